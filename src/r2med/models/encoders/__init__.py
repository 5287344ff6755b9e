"""Encoders: model cards, and the code that loads and runs each kind of embedding model."""
