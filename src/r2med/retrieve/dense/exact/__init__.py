"""Exact dense search: every document scored, by NumPy or by a GPU, with one ranking."""
