"""Exact search: fast products propose documents, and float64 sums of the stored vectors decide."""
