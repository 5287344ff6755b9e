"""The datasheet of a training set as a page for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from r2med.data.training_sheet import TrainingOverlap, TrainingSheet
from r2med.foundation.pages.page import Bullets, Page, Section, Table
from r2med.foundation.text.plurals import counted

RULE = (
    "A negative was judged to be irrelevant by everybody who labelled it, and clearly so: the mean grade of judges on "
    "a scale from 0 to 3 is below 1. Documents without a label are never negatives. Nor are copies of a relevant "
    "document, other passages of its page, relevant documents of other queries of the group, and texts that name the "
    "answer or a synonym of it."
)
POSITIVES_ONLY = (
    "No judged negatives: the set has positives only. Let LLMs judge what systems return (r2med judge), and give the "
    "overlay."
)


def sheet_page(sheet: TrainingSheet, folds: Sequence[TrainingSheet] = ()) -> Page:
    """Return the page of a datasheet, with the datasheets of its folds if it was split."""
    title = f"Training set from {sheet.dataset}" + (f", without fold {sheet.fold}" if sheet.fold else "")
    sections = [
        Section("Rows", list(_rows(sheet))),
        Section("Groups of queries", list(_groups(sheet, folds))),
        Section("Overlap with test sets", list(_overlaps(sheet, folds))),
    ]
    facts = [
        ("Queries", f"{sheet.queries:,}", ""),
        ("Positives", f"{sheet.positives:,}", ""),
        ("Negatives", f"{sheet.negatives:,}", "" if sheet.negatives else "positives only"),
        ("Folds", str(sheet.folds or "–"), ""),
    ]
    foot = f"Written by r2med {sheet.r2med} on {sheet.created}."
    return Page(title, sections, "" if sheet.negatives else POSITIVES_ONLY, facts, foot, kind="datasheet")


def _rows(sheet: TrainingSheet) -> Iterator[str | Table | Bullets]:
    yield f"The rows come from {sheet.dataset} (fingerprint {sheet.fingerprint[:12]}{_of(sheet)})."
    if sheet.allowed_test_set:
        yield (
            f"{sheet.allowed_test_set} is a known test set. The maker of this set allowed it: scores on it say nothing "
            "about a model that was trained with these rows."
        )
    if sheet.negatives:
        yield RULE
    yield Table.of(("labelled by", "pairs"), list(sheet.labelled_by.items()), "Who labelled the rows")
    if sheet.models:
        listed = [(step, ", ".join(models)) for step, models in sheet.models.items()]
        yield Table.of(("step", "models"), listed, "Models that made the dataset")
    if sheet.reasoned:
        yield f"{counted(sheet.reasoned, 'query', 'queries')} have a reasoning text."
    if sheet.left_out:
        yield Table.of(("reason", "documents"), list(sheet.left_out.items()), "Judged documents that are no rows")
    if sheet.files:
        files = [(name, each.rows, each.sha256) for name, each in sheet.files.items()]
        yield Table.of(("file", "rows", "SHA-256"), files, "Files")


def _of(sheet: TrainingSheet) -> str:
    parts = [f"licence {sheet.licence}"] * bool(sheet.licence) + [sheet.source] * bool(sheet.source)
    parts += [f"overlay {each.name} {each.digest[:12]}" for each in sheet.overlays]
    return "".join(f", {part}" for part in parts)


def _groups(sheet: TrainingSheet, folds: Sequence[TrainingSheet]) -> Iterator[str | Table]:
    yield (
        f"{counted(sheet.groups, 'group')} of queries that share nothing; the largest has "
        f"{counted(sheet.largest_group, 'query', 'queries')}."
    )
    linked = list(sheet.linked.items())
    yield Table.of(("shared", "queries"), linked, "Queries that share this with another query")
    if folds:
        rows = [(each.fold, each.queries, each.positives, each.negatives) for each in folds]
        yield Table.of(("without fold", "queries", "positives", "negatives"), rows, "Rows that each fold trains with")


def _overlaps(sheet: TrainingSheet, folds: Sequence[TrainingSheet]) -> Iterator[str | Table]:
    rows = [_row(each) for part in (sheet, *folds) for each in part.overlaps if not folds or each.fold == part.fold > 0]
    rows += [_row(each) for each in folds[0].overlaps if not each.fold] if folds else []
    heads = ("test set", "queries compared", "verdict", "questions", "relevant documents", "answers")
    yield Table.of(heads, rows, "Equal and nearly equal texts, and runs of 13 words")
    if sheet.not_compared:
        yield f"Not on this machine, so not compared: {', '.join(sheet.not_compared)}."


def _row(overlap: TrainingOverlap) -> tuple[str, int, str, int, int, int]:
    name = f"{overlap.dataset}, fold {overlap.fold} (held out)" if overlap.fold else overlap.dataset
    return name, overlap.queries, overlap.words, overlap.questions, overlap.passages, overlap.answers
