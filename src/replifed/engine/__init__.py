"""The engine: runs any method on any problem, compares runs with their twins, and searches step sizes."""
