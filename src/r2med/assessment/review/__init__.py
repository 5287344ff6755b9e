"""People's review: their ratings on disk, what the page shows next, what they decide, and how far they agree."""
