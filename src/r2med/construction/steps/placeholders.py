"""Replace personal data by placeholders. In one item, the same person or number has the same placeholder."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from r2med.construction.steps.person_names import PARTICLES, TITLES
from r2med.construction.steps.personal_data import OLDEST, PLACEHOLDER, PersonalKind, PersonalSpan
from r2med.construction.steps.plain_view import PlainView

MAX_NAMESAKES = 50
"""Maximum number of people with one surname that a mention is compared with, so that a long text takes linear time."""


class Placeholders:
    """The placeholders of one item, such as [NAME-1]. New numbers come after those that its texts already contain."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._last: dict[str, int] = defaultdict(int)
        self._known: dict[tuple[str, str], str] = {}
        self._people: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        for text in texts:
            for match in PLACEHOLDER.finditer(text):
                self._last[match["kind"]] = max(self._last[match["kind"]], int(match["number"]))

    def replace(self, text: str, spans: Sequence[PersonalSpan]) -> str:
        """Return the text with a placeholder for each span. Spans are in order and do not overlap."""
        parts, done = [], 0
        for span in spans:
            parts += [text[done : span.start], self.of(span.kind, text[span.start : span.end])]
            done = span.end
        return "".join([*parts, text[done:]])

    def of(self, kind: PersonalKind, value: str) -> str:
        """Return the placeholder of a value."""
        if kind == "AGE":
            return OLDEST
        plain = " ".join(PlainView.of(value).text.casefold().split())
        if (kind, plain) not in self._known:
            self._known[kind, plain] = self._person(plain) if kind == "NAME" else self._new(kind)
        return self._known[kind, plain]

    def _new(self, kind: PersonalKind) -> str:
        self._last[kind] += 1
        return f"[{kind}-{self._last[kind]}]"

    def _person(self, plain: str) -> str:
        """Return the placeholder of a person, who may be known by another form of the name."""
        surname, comma, given = plain.partition(",")
        words = re.findall(r"[^\W\d_][\w'-]*", f"{given} {surname}" if comma else plain)
        parts = tuple(word for word in words if word not in PARTICLES | TITLES) or tuple(words) or (plain,)
        namesakes = self._people[parts[-1]][:MAX_NAMESAKES]
        placeholder = next((known for other, known in namesakes if is_same_person(parts, other)), "")
        placeholder = placeholder or self._new("NAME")
        for part in set(parts):
            if len(part) > 1 or len(parts) == 1:
                self._people[part].append((parts, placeholder))
        return placeholder


def is_same_person(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return True if two names, as words in lower case, may belong to one person.

    A part of a name is the same person, and so is a given name that one of them shortens to its initial.
    """
    if set(one) <= set(other) or set(other) <= set(one):
        return True
    short = len(one[0]) == 1 or len(other[0]) == 1
    return one[-1] == other[-1] and short and one[0][0] == other[0][0]
