"""Assert the facts of a message (ids, lines, counts, settings, commands) in any wording, and that it is one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from r2med.foundation.core.errors import UserError

Facts = Sequence[object]


def states(message: object, *facts: object) -> None:
    """Assert that a message, or an error, is one line that has every fact."""
    text = _text(message)
    assert text and len(text.splitlines()) == 1, f"not one line: {text!r}"
    missing = _missing(text, facts)
    assert not missing, f"{text!r} does not state {', '.join(missing)}"


def some_states(messages: Iterable[object], *facts: object) -> None:
    """Assert that one of several messages has every fact."""
    texts = [_text(message) for message in messages]
    found = [text for text in texts if not _missing(text, facts)]
    assert found, f"no message states {', '.join(map(str, facts))}: {texts}"
    states(found[0], *facts)


def each_states(messages: Iterable[object], *rows: Facts) -> None:
    """Assert that there are as many messages as rows of facts, and that each, in order, has its own."""
    texts = [_text(message) for message in messages]
    assert len(texts) == len(rows), texts
    for text, facts in zip(texts, rows, strict=True):
        states(text, *facts)


@contextmanager
def error_states(*facts: object, kind: type[Exception] = UserError) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Assert that a block ends with an error that the user can fix, of one line that has every fact."""
    with pytest.raises(kind) as raised:
        yield raised
    states(raised, *facts)


def _text(message: object) -> str:
    return str(message.value if isinstance(message, pytest.ExceptionInfo) else message)


def _missing(text: str, facts: Iterable[object]) -> list[str]:
    return [str(fact) for fact in facts if not any(re.search(_whole(form), text) for form in _forms(fact))]


def _forms(fact: object) -> tuple[str, ...]:
    """Return how a fact may be written: 1048576 also as 1,048,576."""
    return (str(fact), f"{fact:,}") if isinstance(fact, int) else (str(fact),)


def _whole(fact: str) -> str:
    """Return the pattern of a name or number that is no part of another: not q1 in q10, not 3 in 30, 0.3 or 3,000."""
    before = r"(?<!\w)" if re.match(r"\w", fact) else ""
    after = r"(?!\w)" if re.search(r"\w$", fact) else ""
    if re.match(r"\d", fact):
        before += r"(?<!\d[.,])"
    if re.search(r"\d$", fact):
        after += r"(?!\.\d|,\d{3}(?!\d))"
    return before + re.escape(fact) + after
