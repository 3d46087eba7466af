"""Every method on the same four problems, under one ledger; a comparison that no paper has."""
