"""Evaluate systems on datasets: one system, many systems, plans, and why a query scored as it did."""
