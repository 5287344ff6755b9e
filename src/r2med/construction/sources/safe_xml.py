"""Read the elements of an XML file one by one, in little memory, without custom entities or external files."""

from __future__ import annotations

import html
from collections.abc import Iterator
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from r2med.construction.sources.source_files import MAX_BYTES, SourceError, SourceFile

BLOCK = 1 << 20
MAX_TAG_BYTES = 8 << 20
"""Maximum size of a tag. A post is an attribute of a tag and has up to 30,000 letters. The parser reads an open tag
again with every block."""
MAX_DEPTH = 256
"""Maximum depth of nested elements. Articles have about twenty levels."""


def xml_elements(file: SourceFile, tag: str) -> Iterator[tuple[int, Element]]:
    """Yield (line, element) for each element with this tag, with its whole content. Everything else is dropped.

    Raises SourceError with line and column if the file is not well-formed, declares entities, is nested too deeply, or
    has an element that is too large. The elements before are yielded first.
    """
    elements = _Elements(tag)
    ended = False
    while not ended:
        block = file.stream.read(BLOCK)
        ended = not block
        fault = elements.feed(block)
        yield from elements.finished
        elements.finished.clear()
        if fault:
            raise SourceError(fault)


class _Elements:
    """Builds the elements with one tag, and drops all others."""

    def __init__(self, tag: str) -> None:
        self.finished: list[tuple[int, Element]] = []
        self._tag = tag
        self._builder: TreeBuilder | None = None
        self._line, self._depth, self._outside, self._size, self._fed = 0, 0, 0, 0, 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._declared
        self._parser.SkippedEntityHandler = self._named

    def feed(self, block: bytes) -> str:
        """Parse a block of bytes, which is empty at the end of the file. Return an error message, or an empty text."""
        try:
            self._parser.Parse(block, not block)
            self._fed += len(block)
            if self._fed - self._parser.CurrentByteIndex > MAX_TAG_BYTES:  # a tag that does not end
                raise SourceError(f"a tag is larger than {MAX_TAG_BYTES >> 20} MB")
        except expat.ExpatError as error:
            cut = "" if block else ": the file ends too early"
            return f"line {error.lineno}, column {error.offset + 1}: {expat.ErrorString(error.code)}{cut}"
        except (SourceError, ValueError, LookupError) as error:
            return f"line {self._parser.CurrentLineNumber}, column {self._parser.CurrentColumnNumber + 1}: {error}"
        return ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SourceError(f"more than {MAX_DEPTH} nested elements")
        if self._builder is None and name == self._tag:
            self._builder = TreeBuilder()
            self._line, self._outside, self._size = self._parser.CurrentLineNumber, self._depth - 1, 0
        if self._builder is not None:
            self._builder.start(name, attributes)
            self._grow(100 + sum(map(len, attributes.values())))

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._builder is not None:
            self._builder.end(name)
            if self._depth == self._outside:
                self.finished.append((self._line, self._builder.close()))
                self._builder = None

    def _text(self, text: str) -> None:
        if self._builder is not None:
            self._builder.data(text)
            self._grow(len(text))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_BYTES:
            raise SourceError(f"the element in line {self._line} is larger than {MAX_BYTES >> 20} MB")

    def _named(self, name: str, is_parameter: bool) -> None:
        # A named character such as &nbsp;. HTML's names are known; a file that declares others is not read.
        if not is_parameter:
            self._text(html.unescape(f"&{name};"))

    def _declared(self, name: str, *declaration: object) -> None:
        raise SourceError(f"it declares the entity {name!r}: custom entities are not allowed")
