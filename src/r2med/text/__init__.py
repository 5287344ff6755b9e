"""Text analysis: from running text to index terms."""

from r2med.text.chunks import analyse_chunks
from r2med.text.english import english, terms

__all__ = ["analyse_chunks", "english", "terms"]
