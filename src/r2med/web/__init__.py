"""What all HTML pages share."""
