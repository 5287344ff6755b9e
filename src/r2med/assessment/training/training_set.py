"""Write a training set: rows in the formats of training libraries, folds, provenance and the datasheet."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from r2med.assessment.audit.containment import KnownText, OtherText, SharedText, known_texts, shared_texts
from r2med.assessment.audit.overlaps import overlap_of, overlaps
from r2med.assessment.training.files_beside_dataset import models_of
from r2med.assessment.training.query_groups import QueryGroups, query_groups
from r2med.assessment.training.sheet_page import sheet_page
from r2med.assessment.training.training_formats import DEFAULT_FORMAT, FORMATS, TrainingFormat, formatted
from r2med.assessment.training.training_rows import TrainingPair, TrainingRows, training_rows
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import bundled_cards, cards, demo_cards, is_known_set
from r2med.data.fold_file import FOLDS_NAME, Folds, fold_folder
from r2med.data.hub import is_fetched
from r2med.data.loading import load_dataset
from r2med.data.overlays import Overlay, add_labels
from r2med.data.training_sheet import SHEET_NAME, SheetOverlay, TrainingFile, TrainingOverlap, TrainingSheet
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import __version__
from r2med.foundation.pages.text_formats import page_markdown
from r2med.foundation.store import Store
from r2med.foundation.store.files import json_line, replaced, sha256
from r2med.foundation.text.synonyms import Synonyms

PROVENANCE_NAME, PAGE_NAME = "provenance.jsonl", "README.md"
FILE_NAMES = {SHEET_NAME, PAGE_NAME, PROVENANCE_NAME, FOLDS_NAME, *(f"{form}.jsonl" for form in FORMATS)}
"""Names of all files that a training set may have, in its folder or in that of a fold."""
REPEATED_SHARE = 0.5
"""Share of the questions above which a dataset repeats a known test set."""
FOLD_FOLDER = re.compile(r"fold-\d+")


@dataclass(frozen=True)
class TrainingSet:
    """A training set on disk."""

    folder: Path
    """The folder."""
    sheet: TrainingSheet
    """The datasheet of the whole set."""
    folds: Folds | None = None
    """The fold of each query, if the set was split."""
    fold_sheets: tuple[TrainingSheet, ...] = ()
    """The datasheets of the folds."""


@dataclass(frozen=True)
class TrainingPlan:
    """What a training set is made of."""

    dataset: Dataset
    """The dataset with its own labels alone."""
    overlays: tuple[Overlay, ...] = ()
    formats: tuple[TrainingFormat, ...] = (DEFAULT_FORMAT,)
    negatives: int = 5
    """Largest number of negatives of a query."""
    folds: int = 0
    synonyms: Synonyms | None = None
    allowed: str = ""
    """The known test set that may be trained with."""
    created: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))

    def write(self, folder: Path, store: Store) -> TrainingSet:
        """Write the training set into a folder, whole or not at all.

        An earlier training set in the folder is replaced. Raises UserError if the folder has other files, such as the
        weights of a model, if a known test set is not split, if a split would leak, or if there is nothing to train
        with.
        """
        _refuse_other_files(folder)
        known = _known_test_set(self.dataset)
        if known:  # before anything that takes long
            self._check_test_set(known)
        groups = query_groups(add_labels(self.dataset, self.overlays), self.synonyms)
        rows = training_rows(self.dataset, self.overlays, groups, self.synonyms, self.negatives)
        if not rows.queries:
            raise UserError(
                f"{self.dataset.name} has no query with a relevant document: there is nothing to train with"
            )
        folds = groups.folds(self.folds) if self.folds else None
        test = _TestSets.of(self.dataset, store, rows)
        allowed = self._check_test_set(known or test.repeated(rows))
        with replaced(folder, SHEET_NAME, "a training set") as new:
            self._write_rows(new / PROVENANCE_NAME, map(_provenance, rows.pairs))
            if folds is None:
                sheet = self._written(new, rows, groups, test, allowed)
                parts: tuple[TrainingSheet, ...] = ()
            else:
                folds.write(new / FOLDS_NAME)
                parts = tuple(self._written_fold(new, each, rows, groups, test, folds) for each in folds.numbers)
                sheet = self._sheet(rows, groups, {}, (), test.missing, allowed)
                self._write_sheet(new, sheet, parts)
        return TrainingSet(folder, sheet, folds, parts)

    def _check_test_set(self, name: str) -> str:
        """Return the known test set that the user allowed. Raises UserError if `name` is one that is not split."""
        if self.allowed and self.allowed not in (name, self.dataset.name):
            raise UserError(
                f"{self.dataset.name} is not the test set {self.allowed}: name {name or 'none, since it is not one'}"
            )
        if name and not self.folds and not self.allowed:
            same = (
                "is a known test set" if name == self.dataset.name else f"has the questions of {name}, a known test set"
            )
            raise UserError(
                f"{self.dataset.name} {same}, which says nothing about a model that has seen all of it: split it "
                f"with folds (--folds 5), or allow it with allow_test_set (--allow-test-set {quote(name)})",
            )
        return self.allowed

    def _written_fold(
        self, new: Path, fold: int, rows: TrainingRows, groups: QueryGroups, test: _TestSets, folds: Folds
    ) -> TrainingSheet:
        """Write the rows that the model of a fold is trained with: those of all other folds."""
        held_out = folds.queries(fold)
        folder = new / fold_folder(fold)
        folder.mkdir()
        kept = _without_repeats(rows.without(held_out), held_out)
        return self._written(folder, kept, groups, test, "", fold, held_out, folds.digest_of(fold))

    def _written(
        self,
        folder: Path,
        rows: TrainingRows,
        groups: QueryGroups,
        test: _TestSets,
        allowed: str,
        fold: int = 0,
        held_out: frozenset[str] = frozenset(),
        held_out_digest: str = "",
    ) -> TrainingSheet:
        files = {}
        for form in self.formats:
            path = folder / f"{form}.jsonl"
            count = self._write_rows(path, formatted(rows, form, self.negatives))
            files[path.name] = TrainingFile(sha256=sha256(path), rows=count)
        found = test.overlaps(rows, fold, held_out)
        sheet = self._sheet(rows, groups, files, found, test.missing, allowed, fold, held_out_digest)
        self._write_sheet(folder, sheet)
        return sheet

    @staticmethod
    def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> int:
        count = 0
        with path.open("wb") as file:
            for count, row in enumerate(rows, 1):  # noqa: B007 - it is the number of rows
                file.write(json_line(row))
        return count

    @staticmethod
    def _write_sheet(folder: Path, sheet: TrainingSheet, parts: Sequence[TrainingSheet] = ()) -> None:
        sheet.write(folder / SHEET_NAME)
        (folder / PAGE_NAME).write_text(page_markdown(sheet_page(sheet, parts)), "utf-8")

    def _sheet(
        self,
        rows: TrainingRows,
        groups: QueryGroups,
        files: dict[str, TrainingFile],
        found: Sequence[TrainingOverlap],
        missing: Sequence[str],
        allowed: str,
        fold: int = 0,
        held_out: str = "",
    ) -> TrainingSheet:
        pairs = list(rows.pairs)
        roles = Counter(pair.role for pair in pairs)
        card = self.dataset.card
        return TrainingSheet(
            r2med=__version__,
            created=self.created,
            dataset=self.dataset.name,
            fingerprint=self.dataset.fingerprint,
            licence=card.licence if card else "",
            source=self.dataset.source,
            overlays=tuple(SheetOverlay(name=each.name, digest=each.digest) for each in self.overlays),
            fold=fold,
            held_out=held_out,
            folds=self.folds,
            queries=len(rows.queries),
            positives=roles["positive"],
            negatives=roles["negative"],
            reasoned=sum(bool(each.reasoning.strip()) for each in rows.queries),
            labelled_by=dict(Counter(name for pair in pairs for name in pair.by).most_common()),
            models=models_of(self.dataset),
            left_out={reason: count for reason, count in rows.left_out.items() if count},
            groups=len(groups.groups),
            largest_group=len(groups.groups[0]),
            linked=groups.linked,
            allowed_test_set=allowed,
            files=files,
            overlaps=tuple(found),
            not_compared=tuple(missing),
        )


def _refuse_other_files(folder: Path) -> None:
    """Raise UserError if a folder has files that a training set does not have. A trained model has a datasheet, too."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        inside = path.parent == folder or (path.parent.parent == folder and FOLD_FOLDER.fullmatch(path.parent.name))
        if not (path.is_dir() and not path.is_symlink()) and not (inside and path.name in FILE_NAMES):
            raise UserError(
                f"{folder} has the file {path.relative_to(folder)}, which is not part of a training set and would be "
                "lost: choose another folder with -o"
            )


def _provenance(pair: TrainingPair) -> dict[str, Any]:
    """Return where a pair of a query and a document comes from, as a line of a file."""
    row = {"query": pair.query, "document": pair.document, "role": pair.role, "grade": pair.grade, "by": list(pair.by)}
    return {**row, "said": pair.said} if pair.said else row


def _without_repeats(rows: TrainingRows, held_out: frozenset[str]) -> TrainingRows:
    """Return the rows without negatives that repeat a question, an answer or a relevant document of held-out queries.

    Groups are made of relevant documents and questions, so that positives of other groups repeat none of them.
    """
    known = known_texts(rows.dataset, held_out)
    negatives = {pair.document for each in rows.queries for pair in each.negatives}
    texts = {document: rows.texts[document] for document in rows.texts if document in negatives}
    # Of each text, only the closest copy is named. So this ends if no further copy is found.
    while found := {each.place for each in _shared(known, texts, rows.dataset)}:
        repeated = {texts[document] for document in found}
        same = {document for document, text in texts.items() if text in repeated}
        rows = rows.without_negatives(same, "repeats a text of a held-out query")
        texts = {document: text for document, text in texts.items() if document not in same}
    return rows


def _shared(known: Sequence[KnownText], texts: Mapping[str, str], dataset: Dataset) -> tuple[SharedText, ...]:
    return shared_texts(known, [OtherText(name, text) for name, text in texts.items()], [dataset]).found


@dataclass(frozen=True)
class _TestSets:
    """The known test sets at hand, compared once with all rows: what no row holds, no part of the rows holds."""

    dataset: Dataset
    others: tuple[Dataset, ...]
    """Known test sets that share a text with the rows."""
    shared: tuple[TrainingOverlap, ...]
    """What these share."""
    clean: tuple[TrainingOverlap, ...]
    """Those that share nothing."""
    missing: tuple[str, ...]

    @classmethod
    def of(cls, dataset: Dataset, store: Store, rows: TrainingRows) -> _TestSets:
        own = _known_test_set(dataset)
        known = dict(_all_test_sets(store))
        at_hand = [load_dataset(name, store) for name, there in known.items() if there and name != own]
        found = overlaps(at_hand, _texts(rows))
        pairs = list(zip(at_hand, found, strict=True))
        missing = tuple(name for name, there in known.items() if not there and name != own)
        touched = tuple(each for each, overlap in pairs if overlap.touched)
        shared, clean = (tuple(each for each in found if bool(each.touched) is there) for there in (True, False))
        return cls(dataset, touched, shared, clean, missing)

    def repeated(self, rows: TrainingRows) -> str:
        """Return the known test set whose questions the rows repeat in part or with changes. Empty if there is none."""
        for each in self.shared:
            if each.questions > REPEATED_SHARE * len(rows.queries):
                return each.dataset
        return ""

    def overlaps(self, rows: TrainingRows, fold: int, held_out: frozenset[str]) -> list[TrainingOverlap]:
        """Return what rows share with the queries that a fold holds out (without folds: with all), and with others."""
        texts = list(_texts(rows))
        asked = held_out or frozenset(query.id for query in self.dataset.queries)
        own = shared_texts(known_texts(self.dataset, asked), texts, [self.dataset])
        mine = overlap_of(self.dataset, own.found, len(asked), fold)
        return [mine, *overlaps(self.others, texts), *self.clean]


def _texts(rows: TrainingRows) -> Iterator[OtherText]:
    for each in rows.queries:
        yield OtherText(f"query {each.query.id}", each.query.text)
        if each.reasoning:
            yield OtherText(f"reasoning of query {each.query.id}", each.reasoning)
    for document, text in rows.texts.items():
        yield OtherText(f"document {document}", text)


# Known test sets: the datasets of cards, and the demo. Models that were trained with them cannot be tested on them.


def _known_test_set(dataset: Dataset) -> str:
    """Return the known test set that a dataset is, by its source or its fingerprint; empty if it is not one."""
    if is_known_set(dataset.name, dataset.source, dataset.fingerprint):
        return dataset.name
    every_card = {**demo_cards(), **cards()}
    return next((name for name, card in every_card.items() if card.fingerprint == dataset.fingerprint), "")


def _all_test_sets(store: Store) -> Iterator[tuple[str, bool]]:
    """Yield the name of each known test set, and True if it is on this machine, so that loading needs no network."""
    yield from ((name, True) for name in sorted(demo_cards()))
    for name, card in sorted(bundled_cards().items()):
        by_hand = bool(card.by_hand) and (store.root / "by-hand" / name).is_dir()
        yield name, by_hand or (card.hub is not None and is_fetched(card.hub, store))
