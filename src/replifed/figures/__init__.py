"""Figures and tables of any paper: grids of curves, how they look, and the numbers behind them."""
