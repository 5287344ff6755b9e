"""Text analysis: from running text to index terms."""

from r2med.foundation.text.english import analyse_chunks, english, terms

__all__ = ["analyse_chunks", "english", "terms"]
