"""Expansion: methods that add text to queries before they are searched."""

from r2med.systems.expand.expansion import Expansion

__all__ = ["Expansion"]
