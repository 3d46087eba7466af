"""Dal Fabbro et al. 2023: Q-SHED, a federated Newton-type method with quantised Hessian eigenvectors."""
