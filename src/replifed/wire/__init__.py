"""Methods as clients and a server that send each other bytes: what the ledger counts, on a wire."""
