"""Make the board: a website from records that opens from disk, with leaderboard, explorer and pages of systems."""

from r2med.publication.site.site import make_board

__all__ = ["make_board"]
