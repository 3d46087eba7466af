"""Federated majorise-minimise (Dieuleveut, Fort, Hegazy, Wai 2025)."""
