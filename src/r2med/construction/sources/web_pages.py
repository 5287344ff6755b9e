"""Read the main text of saved web pages, without menus, advertisements and comments. Nothing is downloaded."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from r2med.construction.cited_links import links_hint
from r2med.construction.items import Rejected, SourcePage
from r2med.construction.sources.source_files import SourceError, SourceFile, SourceStep
from r2med.construction.step import Streams
from r2med.foundation.core.errors import UserError, check_installed
from r2med.foundation.runtime.runtime import Runtime

MAX_TAGS = 100_000
"""Maximum number of tags. Long articles have about ten thousand; a page with more is a bomb or a dump, and takes
minutes."""

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = re.compile(rb"""(?i)<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""")
_SAVED_FROM = re.compile(r"<!-- saved from url=\(\d+\)(\S+) -->")
_HEAD = 4096
"""Number of bytes at the start in which browsers note the original address, and pages declare their encoding."""
_CHARACTERS_PER_ERROR = 100
"""Minimum number of characters per broken byte. With more broken bytes, the declared encoding is wrong."""


class ReadWeb(SourceStep, kind="build"):
    """Read the main text of saved web pages: HTML files in a folder or an archive."""

    writes = "pages"
    expects = "saved HTML pages with a text"
    endings = (".html", ".htm", ".xhtml")

    name: str = "read-web"

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return the settings and the hash of the source. If it is missing, the error says how to save cited pages."""
        check_installed(self.name, ["trafilatura"])
        try:
            return super().key(streams, runtime)
        except UserError as error:
            lists = {links_hint(path.parents[2]) for path in streams.files.get("questions", ())}
            raise UserError("; ".join([str(error), *filter(None, lists)])) from None

    def items(self, file: SourceFile) -> Iterator[SourcePage | Rejected]:
        """Yield the page of a file."""
        import trafilatura

        html = decoded(file.read())
        if html.count("<") > MAX_TAGS:
            raise SourceError(f"more than {MAX_TAGS:,} tags")
        tree = trafilatura.load_html(html)
        if tree is None:
            raise SourceError("not HTML")
        addresses = [*tree.xpath("//link[@rel='canonical']/@href"), *tree.xpath("//meta[@property='og:url']/@content")]
        addresses += _SAVED_FROM.findall(html[:_HEAD])
        name = PurePosixPath(file.name)
        page = SourcePage(
            id=f"{self.prefix}{name.with_suffix('')}",
            title=" ".join((tree.findtext(".//title") or name.stem).split()),
            text=trafilatura.extract(tree, include_comments=False) or "",
            url=next((each for each in addresses if each.startswith("http")), saved_address(file.name)),
            source=file.where,
            licence=self.licence,
        )
        yield page if page.text else Rejected.of(page, "no text")


def saved_address(name: str) -> str:
    """Return the address of a page that was saved under its host and path, like those of wget -x; otherwise empty."""
    host, _, path = name.partition("/")
    return f"https://{name}" if path and "." in host else ""


def decoded(body: bytes) -> str:
    """Return HTML as text, by its byte order mark, its declared encoding, UTF-8, or windows-1252, in this order.

    If an encoding is declared, a few broken bytes are replaced. Raises SourceError with a position if no encoding fits.
    """
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body.removeprefix(mark).decode(encoding, "replace")
    if declared := _DECLARED.search(body, 0, _HEAD):
        with contextlib.suppress(LookupError, UnicodeError):
            text = body.decode(declared[1].decode(), "replace")
            if text.count("\ufffd") * _CHARACTERS_PER_ERROR <= len(text):
                return text
    for encoding in ("utf-8", "windows-1252"):
        try:
            return body.decode(encoding)
        except UnicodeDecodeError as error:
            fault = error
    raise SourceError(f"wrong encoding: byte {fault.start + 1} is neither UTF-8 nor windows-1252")
