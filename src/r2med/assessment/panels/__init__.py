"""Panels: raters are tested with planted controls, then rate items, and their ratings are compared."""
