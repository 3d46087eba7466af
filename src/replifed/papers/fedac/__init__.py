"""Yuan and Ma 2020: FedAc, federated accelerated stochastic gradient descent."""
