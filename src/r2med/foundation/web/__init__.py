"""Parts that all HTML pages share."""
