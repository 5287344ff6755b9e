"""The board: a site that opens from disk, made of records. Leaderboard, explorer, pages of systems, reproducing."""
