"""Linearly parameterised majorisers (MM-1, MM-2): families of them, and their federated problem."""
