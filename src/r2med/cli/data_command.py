"""What the commands `r2med data` show: examples, fetched, checked and exported datasets, training sets."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import Shown
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.assessment.training.training_set import TrainingSet
    from r2med.data.dataset import Dataset
    from r2med.data.problems import Problems
    from r2med.foundation.pages.finding import Finding
    from r2med.foundation.pages.page import Page


def show_example(dataset: Dataset, out: str | Path) -> None:
    """Show the files, and what to do with them."""
    from r2med.data.example_data import FOLDER, NOTES, QUESTIONS

    notes, questions, folder = (shlex.quote(str(Path(out) / name)) for name in (NOTES, QUESTIONS, FOLDER))
    sizes = f"{counted(len(dataset.corpus), 'text')}, {counted(len(dataset.queries), 'question')}"
    print(printable(f"{notes} and {questions}: {sizes}. Import them: r2med data import {notes} {questions} -o mine"))
    print(printable(f"{folder}: the same as a dataset. Try it: r2med advise {folder}"))


def show_fetched(datasets: Sequence[Dataset]) -> None:
    """Show what is ready."""
    for dataset in datasets:
        sizes = f"{counted(len(dataset.queries), 'query', 'queries')}, {counted(len(dataset.corpus), 'document')}"
        print(printable(f"{dataset.name}: {sizes} ready"))


def show_problems(found: Mapping[str, Problems], form: str) -> Shown:
    """Show the problems of each dataset as lines, or as one table. The command ends with 2 if there are any."""
    from r2med.foundation.pages.page import Page, Paragraph, Section

    code = 2 if any(map(len, found.values())) else 0
    if form == "text":
        lines = [Paragraph(line, no_wrap=True) for each in found.items() for line in _lines(*each)]
        return Shown(Page("Checks of datasets", [Section("", lines)]), code=code)
    findings = {name: problems.findings() for name, problems in found.items()}
    value = [
        {"dataset": name, "findings": [finding.model_dump(mode="json") for finding in each]}
        for name, each in findings.items()
    ]
    return Shown(_finding_table(findings), value, code)


def _lines(name: str, problems: Problems) -> list[str]:
    verdict = counted(len(problems), "problem") if len(problems) else "sound"
    return [*problems.lines(), *(f"note: {notice}" for notice in problems.notices), f"{name}: {verdict}"]


def _finding_table(found: Mapping[str, Sequence[Finding]]) -> Page:
    from r2med.foundation.pages.finding import VERDICT_WORDS
    from r2med.foundation.pages.page import Table, table_page

    rows = [
        (name, each.id, VERDICT_WORDS[each.verdict], each.sentence) for name, all_ in found.items() for each in all_
    ]
    return table_page("Checks of datasets", Table.of(("dataset", "check", "verdict", "finding"), rows))


def show_exported(folder: Path) -> None:
    """Show where it is, and how it is checked."""
    print(printable(f"{folder} is written: r2med data check {shlex.quote(str(folder))}"))


def show_training(made: TrainingSet) -> None:
    """Show what the training set has, what it shares with test sets, and where its datasheet is."""
    from r2med.assessment.training.sheet_page import POSITIVES_ONLY

    sheet = made.sheet
    sizes = f"{counted(sheet.queries, 'query', 'queries')}, {counted(sheet.positives, 'positive')}"
    split = f", in {counted(sheet.folds, 'fold')} of {counted(sheet.groups, 'group')}" if sheet.folds else ""
    print(printable(f"{made.folder}: {sizes}, {counted(sheet.negatives, 'negative')}{split}"))
    if not sheet.negatives:
        print(printable(f"note: {POSITIVES_ONLY}"))
    for part in made.fold_sheets or (sheet,):
        for each in part.overlaps:
            if each.touched and (each.fold or each.dataset != sheet.dataset):
                where = f"fold {each.fold} of {each.dataset}, which it holds out" if each.fold else each.dataset
                print(printable(f"note: {each.words} with {where}"))
    print(printable(f"the datasheet is {shlex.quote(str(made.folder / 'README.md'))}"))
