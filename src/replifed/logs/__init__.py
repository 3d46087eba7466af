"""Runs that were made elsewhere: their logs as histories, on which claims are measured as on any other."""
