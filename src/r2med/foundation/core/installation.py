"""The command that adds an optional part to this installation.

It does not name r2med: the name is not ours on any package index, so a stranger could register it.
"""

from __future__ import annotations


def install_extra(extra: str) -> str:
    """Return the command that installs an optional part, or several with commas between them."""
    return f"pip install -e '.[{extra}]' in the clone of r2med"
