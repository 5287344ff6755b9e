"""Replace personal data by placeholders. In one item, the same person or number has the same placeholder."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from r2med.foundation.text.personal_data import OLDEST, PLACEHOLDER, PersonalKind, PersonalSpan, personal_spans
from r2med.foundation.text.plain_view import PlainView


class Placeholders:
    """The placeholders of one item, such as [NAME-1]. New numbers come after those that its texts already contain."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._last: dict[str, int] = defaultdict(int)
        self._known: dict[tuple[str, str], str] = {}
        self._names: dict[str, str] = {}
        """Word of a name -> placeholder of the first person with it."""
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
        """Return the placeholder of a value. One word of a name that is known is the same person."""
        if kind == "AGE":
            return OLDEST
        plain = " ".join(PlainView.of(value).text.casefold().split())
        if (kind, plain) not in self._known:
            known = self._names.get(plain) if kind == "NAME" else None
            self._known[kind, plain] = known or self._new(kind)
            for word in re.findall(r"[^\W\d_]{2,}", plain) if kind == "NAME" else ():
                self._names.setdefault(word, self._known[kind, plain])
        return self._known[kind, plain]

    def _new(self, kind: PersonalKind) -> str:
        self._last[kind] += 1
        return f"[{kind}-{self._last[kind]}]"


def deidentified(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of one item, by the names of their fields, with placeholders for what the rules find."""
    placeholders = Placeholders(texts.values())
    return {name: placeholders.replace(text, personal_spans(text)) for name, text in texts.items()}
