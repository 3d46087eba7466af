"""The engine: runs any method on any problem, compares runs with perturbed ones, and searches step sizes."""
