"""Read the text and the links of a forum post, which is stored as HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = frozenset("p div br li ul ol pre blockquote h1 h2 h3 h4 h5 h6 tr table hr".split())


class _Post(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")
        link = dict(attrs).get("href") if tag == "a" else None
        if link and link.strip().lower().startswith(("http://", "https://")):
            self.links.append(link.strip())

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def read_post(body: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a post, with one line per paragraph, and the addresses that it links to."""
    post = _Post()
    post.feed(body)
    post.close()
    lines = (" ".join(line.split()) for line in re.split(r"\n+", "".join(post.parts)))
    return "\n".join(filter(None, lines)), tuple(dict.fromkeys(post.links))
