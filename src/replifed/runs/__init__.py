"""Whole runs: opened from a folder, an archive or the reference, archived, and compared."""
