"""BM25 in English, as Lucene analyses it, and in other languages. The search is exact and uses memory-mapped files."""

from r2med.systems.retrieve.bm25.bm25_retriever import BM25

__all__ = ["BM25"]
