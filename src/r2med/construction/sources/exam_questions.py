"""Read multiple-choice questions of exams, from JSON lines with the fields of MedQA or MedXpertQA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from r2med.construction.items import Rejected, SourceQuestion, StreamItem
from r2med.construction.sources.source_files import SourceError, SourceFile, SourceStep, unreadable

_CHOICES = re.compile(r"\s*\n?\s*Answer Choices:.*\Z", re.DOTALL | re.IGNORECASE)
"""MedXpertQA repeats the options below its questions."""


class ReadExam(SourceStep, kind="build"):
    """Read multiple-choice questions from JSON lines with the fields of MedQA or MedXpertQA."""

    writes = "questions"
    expects = "JSON lines with question, options and answer"
    endings = (".jsonl",)

    name: str = "read-exam"

    def items(self, file: SourceFile) -> Iterator[StreamItem | Rejected]:
        """Yield a question for each line."""
        for line, row in file.rows():
            where = f"{file.name}:{line}"
            try:
                if isinstance(row, SourceError):
                    raise row
                yield self._question(row, where)
            except SourceError as fault:
                yield unreadable(where, str(fault))

    def _question(self, row: Mapping[str, Any], where: str) -> SourceQuestion:
        options = _options(row.get("options"))
        answer = _right(row, options)
        text = row.get("question")
        if not isinstance(text, str) or not text.strip():
            raise SourceError("the field question has no text")
        return SourceQuestion(
            id=self.prefix + str(row.get("id") or where.replace(".jsonl", "").replace(":", "-")),
            text=_CHOICES.sub("", text).strip(),
            answer=answer,
            options=tuple(options.values()),
            body_system=str(row.get("body_system") or ""),
            source=where,
            licence=self.licence,
        )


def _options(value: Any) -> dict[str, str]:
    """Return the options by letter, from an object or a list."""
    if isinstance(value, dict):
        return {str(letter).strip().upper(): str(option).strip() for letter, option in value.items()}
    if isinstance(value, list):
        return {chr(ord("A") + number): str(option).strip() for number, option in enumerate(value[:26])}
    raise SourceError('options must be an object such as {"A": "…"}, or a list')


def _right(row: Mapping[str, Any], options: Mapping[str, str]) -> str:
    """Return the text of the right option. MedQA has its letter in answer_idx, MedXpertQA in label."""
    for field in ("answer_idx", "label", "answer"):
        given = str(row.get(field) or "").strip()
        if given.upper() in options:
            return options[given.upper()]
        if given in options.values():
            return given
    raise SourceError("none of answer_idx, label and answer names one of the options")
