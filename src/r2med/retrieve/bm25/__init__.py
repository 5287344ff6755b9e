"""BM25 with Lucene's English analysis, without Java. The search is exact and uses memory-mapped files and all cores."""

from r2med.retrieve.bm25.searcher import BM25, BM25Retriever

__all__ = ["BM25", "BM25Retriever"]
