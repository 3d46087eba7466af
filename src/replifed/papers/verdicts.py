"""Stands in for `replifed.claims.verdicts` where the workflow's rules and their tests name this module."""

from replifed.claims.verdicts import collect, show

__all__ = ["collect", "show"]
