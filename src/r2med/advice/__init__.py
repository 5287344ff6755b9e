"""Advise which pipeline to use on one's own data."""
