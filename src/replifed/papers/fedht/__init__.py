"""Federated optimisation under an l0 constraint: FedHT and FedIterHT (Tong et al. 2022)."""
