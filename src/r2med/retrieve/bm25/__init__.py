"""BM25 over Lucene's English analysis, without Java: exact, memory-mapped, on all cores."""

from r2med.retrieve.bm25.searcher import BM25, BM25Retriever

__all__ = ["BM25", "BM25Retriever"]
