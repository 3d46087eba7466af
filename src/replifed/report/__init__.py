"""The page on which all figures, tables and verdicts stand."""
