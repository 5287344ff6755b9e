"""Normalise the addresses of pages, so that a link finds its page in any spelling."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote, urlsplit

_EQUIVALENT_PARTS = (
    (re.compile(r"^(www|m|mobile)\."), ""),
    (re.compile(r"^([a-z-]+)\.m\.wikipedia\.org"), r"\1.wikipedia.org"),
    (re.compile(r"^dx\.doi\.org"), "doi.org"),
    (re.compile(r"^ncbi\.nlm\.nih\.gov/pmc/"), "pmc.ncbi.nlm.nih.gov/"),
    (re.compile(r"^ncbi\.nlm\.nih\.gov/pubmed/"), "pubmed.ncbi.nlm.nih.gov/"),
    (re.compile(r"(/index)?\.x?html?$"), ""),
)
"""Patterns that write one address in different ways, and their replacements."""


@lru_cache(4096)  # the chunks of a page have one address
def normalised(address: str) -> str:
    """Return an address without its scheme, its fragment and equivalent parts; empty if the address is not valid."""
    try:
        parts = urlsplit(address.strip())
        host = parts.hostname or ""
    except ValueError:  # such as http://[
        return ""
    if not host:
        return ""
    path = f"{host}{unquote(parts.path)}".rstrip("/")
    for pattern, instead in _EQUIVALENT_PARTS:
        path = pattern.sub(instead, path)
    return f"{path}?{parts.query}" if parts.query else path
