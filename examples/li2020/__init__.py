"""FedAvg on devices that differ: its rate, sampling schemes, a lower bound, and what E and K do."""
