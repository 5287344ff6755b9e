"""Read a list of queries from an answer: a JSON list or object, or lines with numbers or bullets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from r2med.foundation.text.unicode import to_unicode
from r2med.models.ask.json_in_text import MAX_CHARACTERS, Members, Parsed, last_full, members, mended, values

LIST_VERSION = 2
"""Version of the parsing rules. It is part of the key: the journal keeps raw answers."""

_ENTRY = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):]|[Qq](?:uery)?\s?\d{1,2}[.):])\s+(?P<text>\S.*)$")
_QUOTES = "\"'“”‘’`*_ \t"
_WORD = re.compile(r"\w")


def parse_queries(text: str, count: int, *, whole: bool = False) -> Parsed[tuple[str, ...]] | None:
    """Return the queries of an answer, at most `count`; None if it has no list of queries.

    The last full list counts, because models think aloud before they answer. Repeated and empty entries are dropped,
    and so are entries beyond `count`. Each of these repairs is counted. With `whole`, a list with fewer than `count`
    queries cannot be used, because the position of a query decides its weight.
    """
    end = text[-MAX_CHARACTERS:]
    repairs: Counter[str] = Counter()
    entries = last_full(list(_json_lists(end)), len) or last_full(list(_json_lists(mended(end))), len)
    if entries is None:
        entries = last_full(list(_line_lists(end)), len)
        repairs["lines"] += 1
    if entries is None:
        return None
    kept: dict[str, str] = {}
    for entry in entries:
        query = " ".join(to_unicode(entry).split())
        if not _WORD.search(query):
            repairs["empty"] += 1
        elif query.casefold() in kept:
            repairs["repeated"] += 1
        elif len(kept) == count:
            repairs["extra"] += 1
        else:
            kept[query.casefold()] = query
    if not kept or (whole and len(kept) < count):
        return None
    repairs["missing"] += count - len(kept)
    return Parsed(tuple(kept.values()), +repairs)


def _json_lists(text: str) -> Iterator[list[str]]:
    """Yield the lists of strings in the JSON values of a text, and objects whose values are strings."""
    for located in values(text):
        for value in members(located.value):
            entries = _strings(value)
            if entries:
                yield entries
                break


def _strings(value: Any) -> list[str]:
    """Return the queries of a list of strings or of objects, or the values of an object; empty if it is neither."""
    entries = [entry for _, entry in value] if isinstance(value, Members) else value if isinstance(value, list) else []
    found = [entry if isinstance(entry, str) else _only_string(entry) for entry in entries]
    return [entry for entry in found if entry is not None] if None not in found else []


def _only_string(entry: Any) -> str | None:
    """Return the query of an entry such as {"query": "…", "weight": 1}: its only string, or the one named query."""
    if not isinstance(entry, Members):
        return None
    strings = {key.lower(): value for key, value in entry if isinstance(value, str)}
    return strings.get("query") or (next(iter(strings.values())) if len(strings) == 1 else None)


def _line_lists(text: str) -> Iterator[list[str]]:
    """Yield the lists in the lines of a text. Blank lines may be between entries; other lines end a list."""
    block: list[str] = []
    for line in text.split("\n"):
        if entry := _ENTRY.match(line):
            block.append(entry["text"].strip(_QUOTES))
        elif line.strip() and block:
            yield block
            block = []
    if block:
        yield block
