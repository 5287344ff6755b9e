"""Expansion: what reasoning before the search adds to a query."""

from r2med.expand.recorded import METHODS, Expansion, Recorded

__all__ = ["METHODS", "Expansion", "Recorded"]
