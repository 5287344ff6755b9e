"""Expansion: what reasoning before the search adds to a query."""

from r2med.expand.contracts import Expander, Expansion
from r2med.expand.recorded import METHODS, Recorded

__all__ = ["METHODS", "Expander", "Expansion", "Recorded"]
