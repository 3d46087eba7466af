"""Federated gradient matching pursuit (Jeong, Needell, Qin 2023)."""
