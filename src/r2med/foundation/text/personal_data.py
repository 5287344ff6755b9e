"""The kinds of personal data, and where rules find it in a text.

Rules look for dates, ages over 89, ids, telephone numbers and mail addresses. Names and addresses are left to an
installed library or an LLM. Both miss some, so a cleaned text is not guaranteed to be free of personal data.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from r2med.foundation.text.personal_rules import LANGUAGES, RuleKind, rules
from r2med.foundation.text.plain_view import PlainView

PersonalKind = Literal["NAME", "ADDRESS", "DATE", "AGE", "ID", "PHONE", "MAIL"]
PERSONAL_KINDS: tuple[PersonalKind, ...] = get_args(PersonalKind)
KIND_NAMES: Mapping[PersonalKind, str] = {
    "NAME": "names",
    "ADDRESS": "addresses",
    "DATE": "dates",
    "AGE": "ages over 89",
    "ID": "ids",
    "PHONE": "telephone numbers",
    "MAIL": "mail addresses",
}
"""Kind -> its name in reports."""
RULE_KINDS: tuple[PersonalKind, ...] = get_args(RuleKind)
"""Kinds that rules look for."""
OTHER_LANGUAGES = f"anything in languages other than {', '.join(LANGUAGES[:-1])} and {LANGUAGES[-1]}"
"""What rules do not look for, besides whole kinds."""
OLDEST = "over 89"
"""Replacement of an age over 89, since so few people reach it that the number identifies them."""
PLACEHOLDER = re.compile(rf"\[(?P<kind>{'|'.join(PERSONAL_KINDS)})-(?P<number>\d{{1,9}})\]")


def not_looked_for(found: Collection[PersonalKind] = RULE_KINDS) -> list[str]:
    """Return the names of the kinds that are not among those looked for."""
    return [KIND_NAMES[kind] for kind in PERSONAL_KINDS if kind not in found]


@dataclass(frozen=True, order=True)
class PersonalSpan:
    """A part of a text that seems to be personal data, and the rule or the tool that found it."""

    start: int
    end: int
    kind: PersonalKind
    rule: str


def personal_spans(text: str, kinds: Collection[PersonalKind] = PERSONAL_KINDS) -> list[PersonalSpan]:
    """Return the personal data that rules find in a text, in order. Spans do not overlap."""
    view = PlainView.of(text)
    found = [
        PersonalSpan(*view.original(start, end), rule.kind, rule.name)
        for rule in rules()
        if rule.kind in kinds
        for start, end in rule.found(view.text)
    ]
    return separated(found, text)


def separated(spans: Iterable[PersonalSpan], text: str) -> list[PersonalSpan]:
    """Return spans without overlaps, in order. Of spans that overlap, the longest stays, with the ends of all.

    Parts of placeholders that the text already contains are left out.
    """
    taken = [match.span() for match in PLACEHOLDER.finditer(text)]
    joined: list[PersonalSpan] = []
    place = 0
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        while place < len(taken) and taken[place][1] <= span.start:
            place += 1
        if place < len(taken) and taken[place][0] < span.end:
            continue
        if joined and span.start < joined[-1].end:
            last = joined.pop()
            longest = max(last, span, key=lambda each: each.end - each.start)
            span = PersonalSpan(last.start, max(last.end, span.end), longest.kind, longest.rule)
        joined.append(span)
    return joined
