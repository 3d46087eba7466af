"""The public name of the engine's loop."""

from replifed.engine.simulate import BLOW_UP, History, Metric, nonzeros, objective, simulate

__all__ = ["BLOW_UP", "History", "Metric", "nonzeros", "objective", "simulate"]
