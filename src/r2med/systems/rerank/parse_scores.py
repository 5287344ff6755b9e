"""Parse scores from 0 to 10 from an answer: JSON in any shape that models use, or lines such as `[3]: 7`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from r2med.models.ask.json_in_text import MAX_CHARACTERS, Members, Parsed, last_full, members, mended, values

MAX_SCORE = 10.0

Pairs = list[tuple[int, float]]

_NUMBER = r"[-+]?\d{1,9}(?:[.,]\d{1,9})?"
_OF_TEN = r"(?:\s?(?:/|out of|of)\s?10(?!\d))?"
_ID = re.compile(r"(?:passage|document|doc|id|p|d)", re.IGNORECASE)
_SCORE = re.compile(r"score|rating|relevance|grade|points|value", re.IGNORECASE)
_WRITTEN_ID = re.compile(r"\s*<?\W?(?:passage|document|doc|id|p|d)?[\s_#]?\[?(\d{1,9})\]{0,2}>?\s*", re.IGNORECASE)
_WRITTEN_SCORE = re.compile(rf"\s*({_NUMBER}){_OF_TEN}\s*", re.IGNORECASE)
_PAIR = re.compile(
    rf"(?<![\w.])(\d{{1,9}})[\"'\])>*]{{0,4}}\s?(?:[:=|→–-]|->)\s?(?:score:?\s?)?[\"'*]{{0,3}}({_NUMBER})(?![\w.]){_OF_TEN}",
    re.IGNORECASE,
)
_FILLING = re.compile(r"\b(?:passages?|documents?|docs?|ids?|scores?|ratings?)\b", re.IGNORECASE)
_REMARK = re.compile(r"[\"'*]{0,3}\s*(?:$|[-–—(,;:.])")
_SCALE = re.compile(r"\b0\s?(?:-|–|to|\.\.)\s?10\b", re.IGNORECASE)
_SAID = re.compile(
    rf"(?:score|rating|relevance)\b[^\d\n+-]{{0,20}}({_NUMBER})|(?<![\w./])({_NUMBER})\s?(?:/|out of)\s?10(?!\d)"
    rf"|^[ \t*\[`]*({_NUMBER})[ \t*\]`.]*$",
    re.IGNORECASE | re.MULTILINE,
)


def parse_scores(text: str, count: int, highest: float = MAX_SCORE) -> Parsed[dict[int, float]] | None:
    """Return the scores of passages 1 to `count` by index from 0, or None if the answer scores no passage.

    Passages without a score are left out. If a passage has several scores, the last one counts. Numbers without a
    passage are dropped. Scores outside the scale are clipped. Each of these repairs is counted.
    """
    text = text[-MAX_CHARACTERS:]
    right = mended(text)

    def usable(pairs: Pairs) -> int:
        return len({number for number, _ in pairs if 1 <= number <= count})

    pairs = last_full([*_in_json(right)], usable) or last_full([*_in_lines(text)], usable)
    if pairs is None:
        return None
    scores: dict[int, float] = {}
    repairs: Counter[str] = Counter()
    for number, score in pairs:
        if not 1 <= number <= count:
            repairs["invented"] += 1
            continue
        repairs["repeated"] += number - 1 in scores
        repairs["clipped"] += not 0 <= score <= highest
        scores[number - 1] = min(max(score, 0.0), highest)
    repairs["missing"] += count - len(scores)
    return Parsed(scores, +repairs)


def parse_score(text: str, highest: float = MAX_SCORE) -> Parsed[float] | None:
    """Return the last score in an answer about one passage, or None if the answer contains no score."""
    text = _SCALE.sub(" ", text[-MAX_CHARACTERS:])
    right = mended(text)
    said = [
        (match.end(), float(next(filter(None, match.groups())).replace(",", "."))) for match in _SAID.finditer(right)
    ]
    for located in values(right):
        if (score := _score_in(located.value)) is not None:
            said.append((located.end, score))
    if not said:
        return None
    score = sorted(said, key=lambda one: one[0])[-1][1]
    return Parsed(min(max(score, 0.0), highest), +Counter(clipped=int(not 0 <= score <= highest)))


def _in_json(text: str) -> Iterator[Pairs]:
    """Yield the scores of each JSON value. Values with only separators between them belong together."""
    together: Pairs = []
    end = 0
    for located in values(text):
        if text[end : located.start].strip(" \t\r\n,;"):
            yield together
            together = []
        together = together + _pairs(located.value)
        end = located.end
    yield together


def _pairs(value: Any, depth: int = 20) -> Pairs:
    """Return all (passage, score) pairs of a JSON value at any depth."""
    if not depth:
        return []
    if isinstance(value, Members):
        ids = [number for key, entry in value if _ID.fullmatch(key) and (number := _id(entry)) is not None]
        score = _score_in(value)
        if ids and score is not None:
            return [(ids[0], score)]
        return [pair for key, entry in value for pair in _member(key, entry, depth)]
    # A bare list of numbers may be a ranking or citations. So it is not read as scores.
    entries = value if isinstance(value, list) else ()
    return [pair for entry in entries for pair in _couple(entry) or _pairs(entry, depth - 1)]


def _couple(entry: Any) -> Pairs:
    """Return the pair that an entry such as [1, 7] of a list gives."""
    if not isinstance(entry, list) or len(entry) != 2:
        return []
    number, score = _id(entry[0]), _score(entry[1])
    return [(number, score)] if number is not None and score is not None else []


def _member(key: str, entry: Any, depth: int) -> Pairs:
    written = _WRITTEN_ID.fullmatch(key)
    if not written:
        return _pairs(entry, depth - 1)
    score = _score(entry)
    if score is None and isinstance(entry, Members):
        score = _score_in(entry)
    return [(int(written[1]), score)] if score is not None else _pairs(entry, depth - 1)


def _in_lines(text: str) -> Iterator[Pairs]:
    """Yield the scores in lines that contain little else. Scores of neighbouring lines belong together."""
    together: Pairs = []
    for line in filter(str.strip, text.split("\n")):
        pairs = [(int(match[1]), float(match[2].replace(",", "."))) for match in _PAIR.finditer(line)]
        first = _PAIR.search(line)
        if first and not _says_more(_PAIR.sub("", line)):
            together = together + pairs
        elif first and not _says_more(line[: first.start()]) and _REMARK.match(line, first.end()):
            together = [*together, pairs[0]]
        else:
            yield together
            together = []
    yield together


def _says_more(text: str) -> bool:
    return bool(re.search(r"\w", _FILLING.sub("", text)))


def _score_in(value: Any) -> float | None:
    """Return the score of the member whose key names a score.

    The key `score` comes before others, outer keys before inner.
    """
    scores = [
        (key.lower() != "score", score)
        for part in members(value)
        if isinstance(part, Members)
        for key, entry in part
        if _SCORE.search(key) and (score := _score(entry)) is not None
    ]
    return min(scores, key=lambda one: one[0])[1] if scores else None


def _id(entry: Any) -> int | None:
    if isinstance(entry, float):
        return int(entry) if entry.is_integer() and abs(entry) < 1e9 else -1
    written = _WRITTEN_ID.fullmatch(entry) if isinstance(entry, str) else None
    return int(written[1]) if written else None


def _score(entry: Any) -> float | None:
    if isinstance(entry, float):
        return entry
    written = _WRITTEN_SCORE.fullmatch(entry) if isinstance(entry, str) else None
    return float(written[1].replace(",", ".")) if written else None
