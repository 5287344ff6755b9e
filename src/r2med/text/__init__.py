"""Text analysis: from running text to index terms."""

from r2med.text.english import english, terms

__all__ = ["english", "terms"]
