"""FedAvg on data that differ between devices: its rate, two sampling schemes, a lower bound, and what E and K do."""
