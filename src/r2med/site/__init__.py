"""The board: a site that opens from disk, made of records. Leaderboard, explorer, pages of systems, reproducing."""

from r2med.site.site import board

__all__ = ["board"]
