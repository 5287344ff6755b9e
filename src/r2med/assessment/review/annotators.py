"""Qualification and experience of reviewers, in a file without names.

The file of reviews gives each name a random number. This file has the qualification and the years of each number, so
that neither file alone connects a name with a qualification. A published dataset has counts only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.reviews import Rubrics
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.foundation.pages.csv_text import csv_rows
from r2med.foundation.store.files import write_atomically
from r2med.foundation.store.rows import Rows

QUALIFICATIONS = ("physician", "nurse", "pharmacist", "medical student", "biomedical researcher", "other")
"""Suggestions on the page. A person can write any other qualification."""


class Annotator(BaseModel):
    """What is known about a reviewer, without the name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    qualification: str = Field("", max_length=60)
    """The profession, in the words of the person. Empty if it is not stated."""
    years: int | None = Field(None, ge=0, le=80)
    """Years of experience in it. None if they are not stated."""


class AnnotatorBook:
    """The open file of annotators, for use in a `with`. Only its owner can read it."""

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, "file of annotators", "annotators")

    def __enter__(self) -> AnnotatorBook:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def put(self, number: str, annotator: Annotator) -> None:
        """Store what a person says about themselves, and replace what they said before."""
        self._rows.put({number.encode(): annotator.model_dump_json().encode()})

    def annotators(self) -> dict[str, Annotator]:
        """Return all annotators by their numbers."""
        return {key.decode(): Annotator(**json.loads(value)) for key, value in self._rows.items()}


def annotators_file(source: Path) -> Path:
    """Return the path of the file of annotators of a build or a table."""
    return source / "annotators.sqlite" if source.is_dir() else source.with_name(f"{source.name}.annotators.sqlite")


def introduce(source: Path, reviews: ReviewBook, name: str, annotator: Annotator) -> None:
    """Store what a person says about themselves under the random number of the name."""
    with AnnotatorBook(annotators_file(source)) as book:
        book.put(reviews.number(name), annotator)


def read_annotators(source: Path | str, rubrics: Rubrics = RUBRICS) -> list[Annotator]:
    """Return every person who reviewed something of a build or a table, without names and in no order.

    A person who stated nothing has no qualification and no years.
    """
    folder, known = Path(source), dict[str, Annotator]()
    if not reviews_file(folder).is_file():
        return []
    if annotators_file(folder).is_file():
        with AnnotatorBook(annotators_file(folder)) as book:
            known = book.annotators()
    with ReviewBook(reviews_file(folder), rubrics) as reviews:
        numbers = reviews.numbers()
        names = {annotator for _, annotator, _ in reviews.kept()}
    people = [known.get(numbers.get(name, ""), Annotator()) for name in names]
    return sorted(people, key=lambda each: (each.qualification, each.years or 0))


def export_annotators(path: Path, annotators: Iterable[Annotator]) -> None:
    """Write qualifications and years as .csv, without names and numbers, in an order that says nothing."""
    rows = sorted((each.qualification, "" if each.years is None else str(each.years)) for each in annotators)
    write_atomically(path, csv_rows([("qualification", "years"), *rows]).encode("utf-8", "backslashreplace"))
