"""Vectors in the store: one or several for each text, made once and found again by the digest of the text."""
