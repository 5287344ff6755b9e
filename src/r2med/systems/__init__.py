"""Retrieval systems: expand, retrieve, rerank."""
