"""Overlays: further labels for a dataset in a file of their own. The dataset itself is never changed.

An overlay is a file of JSON lines, one label each: who gave which grade to which document, when and why. Overlays can
be stacked. A label of a later overlay replaces that of an earlier one, and both replace the label of the dataset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from statistics import median_low
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from r2med.data.dataset import AppliedOverlay, Dataset, Qrels
from r2med.data.grades import HIGHEST_GRADE
from r2med.data.source_rows import own_rows
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.flags import as_list
from r2med.foundation.store.files import digest, json_line, write_atomically
from r2med.foundation.text.plurals import counted

log = logging.getLogger("r2med")

SUFFIX = ".jsonl"


class OverlayLabel(BaseModel):
    """One line of an overlay: the grade that a judge or a reviewer gave to a document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    """The name of the dataset, as in records."""
    query: str
    """The id of the query."""
    document: str
    """The id of the document."""
    grade: int = Field(ge=-HIGHEST_GRADE, le=HIGHEST_GRADE)
    """The grade on the scale of the dataset."""
    said: str = ""
    """What the judge or reviewer said on the scale of the prompt, such as 3."""
    judge: str = ""
    """The LLM that gave the grade; empty for a person."""
    prompt: str = ""
    """A digest of the prompt of the judge."""
    trust: Literal["", "not tested"] = ""
    """Empty if the judge passed its planted controls, and for a person."""
    reviewer: str = ""
    """The person who gave the grade; empty for an LLM."""
    at: str = ""
    """Date and time in UTC."""
    why: str = ""
    """The reason that was given."""
    repeat: int = Field(0, ge=0)
    """The number of the repeat, from 0, if a judge was asked several times."""


def check_overlay_name(file: Path) -> None:
    """Raise UserError if a file cannot be an overlay by its name."""
    if file.suffix != SUFFIX:
        raise UserError(
            f"{file} does not end in {SUFFIX}: an overlay is a file of JSON lines, such as {file.stem}.jsonl"
        )


Grades = Mapping[str, Mapping[str, int]]
"""Query -> document -> grade."""


@dataclass(frozen=True)
class Overlay:
    """The labels of one file."""

    name: str
    """The name of the file, without its ending."""
    labels: tuple[OverlayLabel, ...]
    """The labels, in the order of the file."""

    @classmethod
    def read(cls, path: Path | str) -> Overlay:
        """Read an overlay. Raises UserError if the file is missing or a line is not a label."""
        file = Path(path)
        labels = []
        for number, label in own_rows(file, OverlayLabel, "overlay", "r2med list overlays lists yours"):
            if bool(label.judge) == bool(label.reviewer):
                raise UserError(f"{file}:{number}: a label is given by a judge or by a reviewer: name one of them")
            labels.append(label)
        if not labels:
            raise UserError(f"{file} has no labels: r2med judge makes an overlay")
        return cls(file.stem, tuple(labels))

    def write(self, path: Path | str) -> None:
        """Write the overlay to a file, completely or not at all."""
        rows = (label.model_dump(mode="json", exclude_defaults=True) for label in self.labels)
        write_atomically(Path(path), map(json_line, rows))

    @cached_property
    def digest(self) -> str:
        """Hash of the labels, independent of the name of the file."""
        return digest([label.model_dump(mode="json") for label in self.labels])

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets that it has labels for."""
        return tuple(dict.fromkeys(label.dataset for label in self.labels))

    def of(self, dataset: str) -> list[OverlayLabel]:
        """Return the labels of one dataset."""
        return [label for label in self.labels if label.dataset == dataset]

    def grades(self, dataset: str) -> Grades:
        """Return the grade of each pair: that of people if they labelled it, otherwise that of the judges.

        Several grades of judges, and of a judge's repeats, become their lower median. People decide by the rule of
        `decided`, and what is `unsettled` does not count.
        """
        labels = self.of(dataset)
        combined: dict[str, dict[str, int]] = {}
        for (query, document), grades in _by_pair(label for label in labels if label.judge).items():
            combined.setdefault(query, {})[document] = median_low(grades)
        for (query, document), grades in _by_pair(label for label in labels if label.reviewer).items():
            if (grade := _decided(grades)) is not None:
                combined.setdefault(query, {})[document] = grade
        return combined

    def unsettled(self, dataset: str) -> list[tuple[str, str]]:
        """Return the pairs of query and document that as many people call relevant as not. Nobody settled them."""
        labels = (label for label in self.of(dataset) if label.reviewer)
        return [pair for pair, grades in _by_pair(labels).items() if _decided(grades) is None]


def _by_pair(labels: Iterable[OverlayLabel]) -> dict[tuple[str, str], list[int]]:
    """Return the grades of each pair of query and document. The last label of a person or a judge's repeat counts."""
    said: dict[tuple[str, str], dict[tuple[str, int], int]] = {}
    for label in labels:
        who = label.judge or label.reviewer, label.repeat
        said.setdefault((label.query, label.document), {})[who] = label.grade
    return {pair: list(grades.values()) for pair, grades in said.items()}


def _decided(grades: Sequence[int]) -> int | None:
    return decided(grades, lambda grade: grade > 0)


def decided(votes: Iterable[int], is_yes: Callable[[int], bool], settled: Sequence[int] = ()) -> int | None:
    """Return the decision about one item; None if it is undecided.

    `votes` are the answers of people who are sure, as places on an ordered scale: grades, or the words of a rubric.
    `settled` are the answers of people who saw the votes of others, and the last of them counts. Without one, the
    majority of yes or no decides, and of several grades their lower median, which is always on the side of the
    majority. As many yes as no, or nobody who is sure, is undecided.

    It decides the labels of people in overlays, and passages, points of questions, corrections and nuggets
    (`assessment/review/reviews.py`).
    """
    if settled:
        return settled[-1]
    given = list(votes)
    if 2 * sum(map(is_yes, given)) == len(given):
        return None
    return median_low(given)


def given_overlays(overlays: str | Path | Overlay | Sequence[str | Path | Overlay] | None) -> list[Overlay]:
    """Return overlays as a list. One that is given as a file is read."""
    return [each if isinstance(each, Overlay) else Overlay.read(each) for each in as_list(overlays)]


def add_labels(dataset: Dataset, overlays: Sequence[Overlay]) -> Dataset:
    """Return the dataset with the labels of overlays, called NAME+OVERLAY.

    An overlay without labels for this dataset changes nothing. Labels of people that are not settled do not count, and
    a note names them. Raises UserError if an overlay names a query or document that the dataset does not have.
    """
    grades = {query: dict(judged) for query, judged in dataset.qrels.items()}
    applied: list[AppliedOverlay] = []
    for overlay in overlays:
        labels = overlay.of(dataset.name)
        if not labels:
            continue
        _check(dataset, overlay, labels)
        for query, judged in overlay.grades(dataset.name).items():
            grades.setdefault(query, {}).update(judged)
        if waiting := overlay.unsettled(dataset.name):
            _report_unsettled(overlay.name, dataset.name, tuple(waiting))
        count = sum(bool(label.reviewer) for label in labels)
        trust = next((label.trust for label in labels if label.trust), "")
        applied.append(AppliedOverlay(overlay.name, overlay.digest, len(labels), count, trust))
    name = "+".join([dataset.name, *(overlay.name for overlay in applied)])
    return replace(dataset, name=name, qrels=Qrels(grades), overlays=(*dataset.overlays, *applied))


@cache  # one note for all systems that are scored
def _report_unsettled(overlay: str, dataset: str, pairs: tuple[tuple[str, str], ...]) -> None:
    query, document = pairs[0]
    log.warning(
        "overlay %s: as many people say yes as no about %s of %s, such as %s for query %s: these labels do not count "
        "until r2med review serve FILE settles them",
        overlay, counted(len(pairs), "passage"), dataset, document, query,
    )  # fmt: skip


def overlay_files(word: str) -> tuple[str, list[str]]:
    """Return the dataset and the overlay files that a word such as Biology+judged.jsonl names."""
    files: list[str] = []
    while word.endswith(SUFFIX) and "+" in word and not Path(word).exists():
        # The name of a file may have a + too. If none of these files exists, the error names the shortest.
        ends = [word[at + 1 :] for at, letter in enumerate(word) if letter == "+"][::-1]
        file = next((end for end in ends if Path(end).is_file()), ends[0])
        word = word.removesuffix(f"+{file}")
        files.insert(0, file)
    return word, files


def _check(dataset: Dataset, overlay: Overlay, labels: Sequence[OverlayLabel]) -> None:
    queries = {query.id for query in dataset.queries}
    if lost := [label.query for label in labels if label.query not in queries]:
        raise UserError(f"overlay {overlay.name}: {dataset.name} has no query {lost[0]!r}: is it of another version?")
    documents = sorted({label.document for label in labels})
    rows = dataset.corpus.rows(documents)
    if missing := [document for document, row in zip(documents, rows, strict=True) if row < 0]:
        raise UserError(
            f"overlay {overlay.name}: {dataset.name} has no document {missing[0]!r}: is it of another version?"
        )
