"""Bridges to other tools of the field, one file each. The other tool is imported on first use."""
