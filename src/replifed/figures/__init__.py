"""Figures and tables of any paper: grids of curves, their style, and the numbers behind them."""
