"""Exact dense search: every document scored, by NumPy, by what numba compiles, or by a GPU, with one ranking."""
