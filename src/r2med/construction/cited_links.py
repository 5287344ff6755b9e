"""Write the list of pages that questions cite, so that they can be fetched with one command of wget."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import urlsplit

from r2med.construction.step import Streams
from r2med.foundation.store.files import write_atomically

LINKS_FILE = "links.txt"
"""Name of the list in the folder of a build."""


def write_links(out: Path, streams: Streams) -> None:
    """Write the addresses that questions cite, each once and in order. Without any, an old list is removed."""
    links = dict.fromkeys(
        link for question in streams.questions() for cited in question.links if (link := fetchable(cited))
    )
    if links:
        write_atomically(out / LINKS_FILE, "".join(f"{link}\n" for link in links).encode())
    else:
        (out / LINKS_FILE).unlink(missing_ok=True)


def fetchable(link: str) -> str:
    """Return an address without its fragment; empty if a line of the list cannot hold it or nothing can fetch it."""
    try:
        parts = urlsplit(link.strip())
        has_host = bool(parts.hostname)
    except ValueError:  # such as http://[
        return ""
    address = parts._replace(fragment="").geturl()
    is_web = parts.scheme in ("http", "https") and has_host
    return address if is_web and address.isprintable() and not any(map(str.isspace, address)) else ""


def links_hint(out: Path) -> str:
    """Return a line that says where the list is and how its pages are fetched; empty without a list."""
    path = out / LINKS_FILE
    if not path.is_file():
        return ""
    with path.open("rb") as lines:
        count = sum(1 for _ in lines)
    return (
        f"{path}: {count:,} pages that questions cite. "
        f"To save them: wget -x -E -i {shlex.quote(str(path))} -P saved-pages"
    )
