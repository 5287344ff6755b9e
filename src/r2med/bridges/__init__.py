"""Bridges to other tools of the field, a file each; the other side is imported when it is used."""
