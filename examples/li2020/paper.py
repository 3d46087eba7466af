"""Names for figures, tables and the report."""

PAPER = {
    "name": "Li et al.",
    "citation": "X. Li, K. Huang, W. Yang, S. Wang, Z. Zhang, On the convergence of FedAvg on non-IID data, "
    "ICLR 2020.",
    "doi": "10.48550/arXiv.1907.02189",
}
