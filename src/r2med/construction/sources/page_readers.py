"""Read pages from JSON lines (Wikipedia, textbooks), articles in JATS XML, and plain text files."""

from __future__ import annotations

import codecs
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

from pydantic import Field, field_validator

from r2med.construction.items import Rejected, SourcePage
from r2med.construction.sources.safe_xml import xml_elements
from r2med.construction.sources.source_files import SourceError, SourceFile, SourceStep, unreadable


class ReadRows(SourceStep, kind="build"):
    """Read pages from JSON lines with the fields text (or content, contents), id, title and url."""

    writes = "pages"
    expects = "JSON lines with text, content or contents (.jsonl, .ndjson)"
    endings = (".jsonl", ".ndjson")

    name: str = "read-wikipedia"
    site: str = Field("", description="Start of the address for pages that have none. The page's title follows it.")

    @classmethod
    def defaults(cls, name: str) -> Mapping[str, Any]:
        """Return the default settings of sources that have their own reader."""
        return _KNOWN_ROWS.get(name, {})

    def items(self, file: SourceFile) -> Iterator[SourcePage | Rejected]:
        """Yield a page for each line."""
        for line, row in file.rows():
            where = f"{file.where}:{line}"
            if isinstance(row, SourceError):
                yield unreadable(where, str(row))
                continue
            text = next((row[field] for field in _TEXTS if isinstance(row.get(field), str)), "")
            if not text.strip():
                yield unreadable(where, f"none of the fields {', '.join(_TEXTS)} has a text")
                continue
            title = str(row.get("title") or "")
            guessed = self.site + quote(title.replace(" ", "_")) if self.site and title else ""
            yield SourcePage(
                id=self.prefix + str(row.get("id") or f"{PurePosixPath(file.name).stem}-{line}"),
                text=text,
                title=title,
                url=str(row.get("url") or guessed),
                source=where,
                licence=self.licence,
            )


_TEXTS = ("text", "content", "contents")
_KNOWN_ROWS: Mapping[str, Mapping[str, str]] = {
    "read-wikipedia": {"site": "https://en.wikipedia.org/wiki/", "licence": "CC BY-SA 4.0"},
}


class ReadText(SourceStep, kind="build"):
    """Read pages from text files, one page per file."""

    writes = "pages"
    expects = "text files (.txt, .md, .text)"
    endings = (".txt", ".md", ".text")

    name: str = "read-text"
    encoding: str = Field("utf-8", description="Encoding of the files.")

    @field_validator("encoding")
    @classmethod
    def _known(cls, encoding: str) -> str:
        try:
            return codecs.lookup(encoding).name
        except LookupError:
            raise ValueError(f"{encoding} is not an encoding such as utf-8, windows-1252 or gb18030") from None

    def items(self, file: SourceFile) -> Iterator[SourcePage | Rejected]:
        """Yield the page of a file."""
        try:
            text = file.read().decode("utf-8-sig" if self.encoding == "utf-8" else self.encoding)
        except UnicodeDecodeError as error:
            fault = f"byte {error.start + 1} is not {self.encoding}: set encoding in read-text"
            raise SourceError(fault) from None
        name = PurePosixPath(file.name)
        facts = {"title": name.stem, "source": file.where, "licence": self.licence}
        page = SourcePage(id=f"{self.prefix}{name.with_suffix('')}", text=text, **facts)
        yield page if text.strip() else Rejected.of(page, "no text")


class ReadJats(SourceStep, kind="build"):
    """Read pages from articles in JATS XML, with abstract and body but without references, tables and formulas."""

    writes = "pages"
    expects = "articles in JATS XML, each an element article (.xml, .nxml); read-pubmed reads PubMed's own XML"
    endings = (".xml", ".nxml")

    name: str = "read-jats"

    def items(self, file: SourceFile) -> Iterator[SourcePage | Rejected]:
        """Yield a page for each article."""
        for line, article in xml_elements(file, "article"):
            page = self.page(article, f"{file.where}:{line}", PurePosixPath(file.name).stem)
            yield page if page.text else Rejected.of(page, "no text")

    def page(self, article: Element, where: str, name: str) -> SourcePage:
        """Return the page of an article. `name` is its id if it has no other id."""
        ids = {each.get("pub-id-type", ""): words(each) for each in article.iterfind("./front//article-id")}
        number, doi = (ids.get("pmc") or ids.get("pmcid", "")).removeprefix("PMC"), ids.get("doi", "")
        pmc = f"PMC{number}" if number else ""
        parts = [*article.iterfind("./front//abstract"), *article.iterfind("./body")]
        return SourcePage(
            id=self.prefix + (pmc or ids.get("pmid") or doi or name),
            text="\n\n".join(text for part in parts for text in paragraphs(part)),
            title=words(article.find("./front//article-title")),
            url=f"https://pmc.ncbi.nlm.nih.gov/articles/{pmc}/" if pmc else f"https://doi.org/{doi}" if doi else "",
            source=where,
            licence=self.licence or _licence(article),
        )


class ReadPubMed(SourceStep, kind="build"):
    """Read pages from PubMed's XML, with title and abstract, as in the files of its yearly baseline."""

    writes = "pages"
    expects = "PubMed's XML, each article an element PubmedArticle with an abstract (.xml); read-jats reads JATS XML"
    endings = (".xml",)

    name: str = "read-pubmed"

    def items(self, file: SourceFile) -> Iterator[SourcePage | Rejected]:
        """Yield a page for each article. One without an abstract is left out."""
        for line, article in xml_elements(file, "PubmedArticle"):
            number = words(article.find("./MedlineCitation/PMID"))
            where = f"{file.where}:{line}"
            if not number:
                yield unreadable(where, "an article without a PMID")
                continue
            sections = map(_section, article.iterfind("./MedlineCitation/Article/Abstract/AbstractText"))
            page = SourcePage(
                id=self.prefix + number,
                text="\n\n".join(filter(None, sections)),
                title=words(article.find("./MedlineCitation/Article/ArticleTitle")),
                url=f"https://pubmed.ncbi.nlm.nih.gov/{number}/",
                source=where,
                licence=self.licence,
            )
            yield page if page.text else Rejected.of(page, "no abstract")


def _section(part: Element) -> str:
    """Return a section of an abstract with its heading, such as METHODS."""
    text, heading = words(part), part.get("Label", "")
    return f"{heading}: {text}" if text and heading else text


_LEFT_OUT = {"table-wrap", "tex-math", "inline-formula", "disp-formula", "ref-list", "fn-group", "object-id"}
_EMPTIED = re.compile(r"\s*[\[(][\s,;–-]*[\])]")
"""Brackets that contained only reference numbers."""


def words(element: Element | None) -> str:
    """Return the words of an element on one line, without reference numbers."""
    if element is None:
        return ""
    return _EMPTIED.sub("", " ".join("".join(_strings(element)).split()))


def _strings(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag not in _LEFT_OUT and child.get("ref-type") != "bibr":
            yield from _strings(child)
        yield child.tail or ""


def paragraphs(part: Element, tags: Container[str] = ("p", "title")) -> Iterator[str]:
    """Yield the paragraphs of a part in order, including headings."""
    for child in part:
        if child.tag in tags:
            if text := words(child):
                yield text
        elif child.tag not in _LEFT_OUT:
            yield from paragraphs(child, tags)


def _licence(article: Element) -> str:
    licence = article.find("./front//permissions/license")
    if licence is None:
        return ""
    link = next((value for key, value in licence.attrib.items() if key.endswith("href")), "")
    return link or words(licence)
