"""Evaluate one or many systems on datasets, plan an evaluation, and explain the score of a query."""
