"""Late interaction and learned sparse retrieval."""
