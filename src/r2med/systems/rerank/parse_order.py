"""Parse an order of passages from an answer: `[3] > [1] > [2]`, a JSON list, numbers on a line, or a list of lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from r2med.models.ask.json_in_text import MAX_CHARACTERS, Members, Parsed, last_full, mended, values

_WORD = r"(?:passages?|documents?|docs?|ids?|p|d)"
# A number that clearly names a passage: it is in brackets or follows a word such as "passage".
_STRONG = rf"[\[【［(（]\s?#?(?:{_WORD}[\s#]?)?(\d{{1,9}})\s?[\]】］)）]|<?\b{_WORD}[\s_#]?\[?(\d{{1,9}})\b\]?>?"
_TOKEN = re.compile(
    rf"(?P<strong>{_STRONG})|(?P<bare>(?<![\w.])\d{{1,9}}(?!\w|\.\d))"
    r"|(?P<above>[=-]?>+|[→≻＞≥≈=])|(?P<beside>[,;，、；])|(?P<noise>[\s\"'`*_.\[\]{}])|(?P<other>\w+|.)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(r"^[^\d\[\]<>:：\n]{0,60}[:：]")
_BULLET = re.compile(r"^[ *_>]{0,4}(?:[-*•]|(\d{1,3})[.):])[*_]{0,2}\s+")
_UNFINISHED = re.compile(r"([\d\]】)>\"'] ?[>,;，、→]) ?\n\s*(?=[\[【(<\d\"'])")
_RANKING = re.compile(r"rank|order|permut|answer|result", re.IGNORECASE)


Order = tuple[int, ...]
"""Indices of passages, the best first."""


def parse_order(text: str, count: int) -> Parsed[Order] | None:
    """Return the order of passages 1 to `count` as indices from 0, or None if the answer names no passage.

    Passages that the answer leaves out come last, in their current order. If a passage is named twice, the first
    position counts. Numbers without a passage are dropped. Each of these repairs is counted.
    """

    def usable(ids: Sequence[int]) -> int:
        return len({number for number in ids if 1 <= number <= count})

    orders = sorted(_orders(_plain(text[-MAX_CHARACTERS:])), key=lambda order: order[0])
    ids = last_full([ids for _, ids in orders], usable)
    return completed(ids or (), count)


def completed(ids: Iterable[int], count: int) -> Parsed[Order] | None:
    """Return the order of all passages from the numbers that an answer names, or None if it names no passage.

    The first mention of a passage counts. Passages that the answer leaves out follow in their current order.
    """
    kept: dict[int, None] = {}
    repairs: Counter[str] = Counter()
    for number in ids:
        if not 1 <= number <= count:
            repairs["invented"] += 1
        elif number in kept:
            repairs["repeated"] += 1
        else:
            kept[number] = None
    if not kept:
        return None
    left_out = [number for number in range(1, count + 1) if number not in kept]
    repairs["missing"] += len(left_out)
    return Parsed(tuple(number - 1 for number in (*kept, *left_out)), +repairs)


def _plain(text: str) -> str:
    """Return the text with each order on one line, also if the answer breaks it over several lines."""
    return _UNFINISHED.sub(r"\1 ", re.sub(r"[^\S\n]+", " ", mended(text)))


def _orders(text: str) -> Iterator[tuple[int, list[int]]]:
    """Yield everything in a text that may be an order, with its position."""
    for located in values(text):
        for ids in _lists(located.value):
            yield located.start, ids
    yield from _lines(text)


def _lists(value: Any, depth: int = 20) -> Iterator[list[int]]:
    """Yield the lists of numbers in a JSON value. If a key of an object names the ranking, yield only its list."""
    if isinstance(value, list):
        ids = [_number(entry) for entry in value]
        if len(ids) > 1 and None not in ids:
            yield [number for number in ids if number is not None]
            return
    inside: Sequence[Any] = value if isinstance(value, list) else ()
    if isinstance(value, Members):
        inside = [entry for key, entry in value if _RANKING.search(key)] or [entry for _, entry in value]
    for entry in inside if depth else ():
        yield from _lists(entry, depth - 1)


def _number(entry: Any) -> int | None:
    """Return the passage that an entry of a list names: 3, "3", "[3]", {"id": 3, …} or [3]."""
    if isinstance(entry, Members):
        ids = [inner for key, inner in entry if re.fullmatch(_WORD, key, re.IGNORECASE)]
        return _number(ids[0]) if ids else None
    if isinstance(entry, list) and len(entry) == 1:
        return _number(entry[0])
    if isinstance(entry, float):
        return int(entry) if entry.is_integer() and abs(entry) < 1e9 else -1
    named = re.fullmatch(rf"\s*(?:{_STRONG}|(\d{{1,9}}))\s*", entry, re.IGNORECASE) if isinstance(entry, str) else None
    return int(next(filter(None, named.groups()))) if named else None


def _lines(text: str) -> Iterator[tuple[int, list[int]]]:
    """Yield the orders in the lines of a text: lists with one entry per line, and orders inside a line."""
    block: list[int] = []
    position = start = 0
    for line in text.split("\n"):
        listed = _listed(line)
        if listed is not None:
            start = start if block else position
            block.append(listed)
        elif line.strip() and block:
            yield start, block
            block = []
        if listed is None:
            yield from ((position, ids) for ids in _chains(line))
        position += len(line) + 1
    if block:
        yield start, block


def _listed(line: str) -> int | None:
    """Return the passage of a list entry such as `2. [3] because …`, `- passage 3`, or a bare `3`."""
    bullet = _BULLET.match(line)
    tokens = _tokens(line[bullet.end() :] if bullet else line)
    if len(tokens) == 1 and tokens[0][0] in ("strong", "bare"):
        return tokens[0][1]
    # Comments on passages come in lists too. A list entry is a rank only if a number precedes it.
    ranked = bullet and bullet[1] and tokens and tokens[0][0] == "strong"
    return tokens[0][1] if ranked and all(kind != "above" for kind, _ in tokens) else None


def _chains(line: str) -> Iterator[list[int]]:
    """Yield the orders inside a line: the whole line, or passages with a > between them."""
    tokens = _tokens(_LABEL.sub("", _BULLET.sub("", line)))
    if not any(kind == "other" for kind, _ in tokens):
        named = [(kind, number) for kind, number in tokens if kind in ("strong", "bare")]
        # One bare number after a word can mean anything, such as a score or an age.
        if len(named) > 1 or (named and named[0][0] == "strong"):
            yield [number for _, number in named]
        return
    chain: list[tuple[str, int]] = []
    for kind, number in [*tokens, ("other", 0)]:
        if kind == "above" or (kind in ("strong", "bare") and (not chain or chain[-1][0] == "above")):
            chain.append((kind, number))
            continue
        kinds, ids = {kind for kind, _ in chain}, [number for kind, number in chain if kind != "above"]
        # Two bare numbers with a > between them can mean anything, such as a blood pressure or a p-value.
        if "above" in kinds and len(ids) >= (3 if "bare" in kinds else 2):
            yield ids
        chain = [(kind, number)] if kind in ("strong", "bare") else []


def _tokens(line: str) -> list[tuple[str, int]]:
    tokens = []
    for match in _TOKEN.finditer(line):
        kind = str(match.lastgroup)
        if kind != "noise":
            digits = re.search(r"\d+", match[0]) if kind in ("strong", "bare") else None
            tokens.append((kind, int(digits[0]) if digits else 0))
    return tokens
