"""Addresses of pages in one form, so that a link finds its page however either was written."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote, urlsplit

_SAME = (
    (re.compile(r"^(www|m|mobile)\."), ""),
    (re.compile(r"^([a-z-]+)\.m\.wikipedia\.org"), r"\1.wikipedia.org"),
    (re.compile(r"^dx\.doi\.org"), "doi.org"),
    (re.compile(r"^ncbi\.nlm\.nih\.gov/pmc/"), "pmc.ncbi.nlm.nih.gov/"),
    (re.compile(r"^ncbi\.nlm\.nih\.gov/pubmed/"), "pubmed.ncbi.nlm.nih.gov/"),
    (re.compile(r"(/index)?\.x?html?$"), ""),
)
"""Ways to write one address."""


@lru_cache(4096)  # the chunks of a page have one address
def normalised(address: str) -> str:
    """Return an address without scheme, fragment and what else makes no other page; empty if it is none."""
    try:
        parts = urlsplit(address.strip())
        host = parts.hostname or ""
    except ValueError:  # as http://[
        return ""
    if not host:
        return ""
    path = f"{host}{unquote(parts.path)}".rstrip("/")
    for pattern, instead in _SAME:
        path = pattern.sub(instead, path)
    return f"{path}?{parts.query}" if parts.query else path
