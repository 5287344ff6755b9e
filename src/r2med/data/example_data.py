"""Write example data: two tables, as people have them, and the dataset that the import makes of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from r2med.data.dataset import Dataset
from r2med.data.dataset_word import names
from r2med.data.loading import load_dataset
from r2med.data.tables.importing import plan_import
from r2med.data.tables.table_import import write_import
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import default_store
from r2med.foundation.store.files import write_atomically

NOTES, QUESTIONS, FOLDER = "notes.csv", "questions.csv", "example"


def write_example_data(folder: Path) -> Dataset:
    """Write notes.csv, questions.csv and the dataset folder example, and return the dataset.

    The texts are those of the demo. Raises UserError if the folder has a file or folder of one of these names.
    """
    for name in (NOTES, QUESTIONS, FOLDER):
        if (folder / name).exists():
            raise UserError(f"{folder / name} exists already: choose another folder with out (--out DIR)")
    demo = [load_dataset(name) for name in names("demo")]
    notes = [(f"{each.name}/{document}", text) for each in demo for document, text in each.corpus]
    questions = [
        (f"{each.name}/{query.id}", query.text, ";".join(_relevant(each, query.id)))
        for each in demo
        for query in each.queries
    ]
    _write(folder / NOTES, ("note_id", "note"), notes)
    _write(folder / QUESTIONS, ("question_id", "question", "relevant notes"), questions)
    plan = plan_import([folder / NOTES, folder / QUESTIONS])
    return write_import(plan, folder / FOLDER, default_store())


def _relevant(dataset: Dataset, query: str) -> Iterable[str]:
    return (f"{dataset.name}/{document}" for document, grade in dataset.qrels[query].items() if grade > 0)


def _write(file: Path, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([heads, *rows])
    write_atomically(file, text.getvalue().encode())
