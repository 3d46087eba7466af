"""Fed-PLT: privacy through local training (Bastianello, Liu, Johansson 2024)."""
