"""Retrievers: search a corpus with queries and return a Run."""
