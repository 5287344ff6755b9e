"""Dense retrieval: embeddings in the store and search over them."""

from r2med.systems.retrieve.dense.dense_retriever import Dense

__all__ = ["Dense"]
