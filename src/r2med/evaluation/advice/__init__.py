"""Recommend a pipeline for the user's own data."""
