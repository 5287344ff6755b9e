"""Expansion: methods that add text to queries before they are searched."""

from r2med.systems.expand.expansion import Expander, Expansion

__all__ = ["Expander", "Expansion"]
