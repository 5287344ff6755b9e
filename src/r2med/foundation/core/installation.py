"""The command that adds an optional part to this installation.

It does not name r2med: the name is not ours on any package index, so a stranger could register it.
"""

from __future__ import annotations


def install_extra(extra: str, pip: str = "pip", *packages: str) -> str:
    """Return the command that installs an optional part, or several with commas between them, and other packages."""
    return f"{' '.join((pip, 'install', *packages))} -e '.[{extra}]' in the clone of r2med"
