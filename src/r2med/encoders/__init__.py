"""Models: one card each, and how each kind is loaded."""
