"""Rerankers: cross-encoders, LLMs and user scorers that reorder the top of a ranking."""

from r2med.systems.rerank.reranking import Reranked

__all__ = ["Reranked"]
