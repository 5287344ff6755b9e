"""Putting the top of a ranking into a better order: cross-encoders, LLMs, a user's own scorer."""

from r2med.rerank.reranking import Reranked, Reranker

__all__ = ["Reranked", "Reranker"]
