"""`r2med cite`: what to cite, as BibTeX."""

from __future__ import annotations

from r2med.foundation.text.terminal_text import printable


def cite() -> None:
    """Print what to cite as BibTeX: the benchmark's paper, and this software in the version that is installed."""
    from importlib import resources

    from r2med import __version__

    text = (resources.files("r2med") / "citation.bib").read_text(encoding="utf-8").replace("VERSION", __version__)
    for line in text.splitlines():
        print(printable(line))
