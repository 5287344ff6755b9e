"""LLMs as rerankers: a permutation of a window, scores of a group, or one score for one passage."""

from r2med.rerank.llm.build import METHODS, build

__all__ = ["METHODS", "build"]
