"""Records on a dataset with aspects hold the measures of aspects; records on other datasets stay as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

import r2med
from r2med import score
from r2med.data import load
from r2med.data.runs.run import Run
from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.measure import DEFAULT_MEASURES
from r2med.evaluation.measure.measures import ASPECT_MEASURES
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.running.results import Results
from r2med.evaluation.running.run_page import run_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.page import Table
from r2med.foundation.store import Store

WITH, WITHOUT = "demo/Medical-Sciences", "demo/Bioinformatics"
NAMES = list(map(str, ASPECT_MEASURES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aspects")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    store = Store(folder / "store")
    return r2med.run(["bm25", "bm25(scorer=lucene)"], [WITH, WITHOUT], out=folder / "runs", store=store)


@pytest.fixture(scope="module")
def collection(results: Results, folder: Path) -> RecordCollection:
    return collect([folder / "runs"])


def test_only_records_on_a_dataset_with_aspects_hold_their_measures(collection: RecordCollection) -> None:
    kept = collection.cells["bm25", WITH]
    assert kept.run_file is not None
    dataset = load(WITH)
    expected = score(dataset.qrels, Run.read(kept.run_file, encoded=True), aspects=dataset.aspects)
    assert kept.record.mean == {str(measure): value for measure, value in expected.mean.items()}
    assert set(NAMES) < set(kept.record.mean)
    assert list(collection.cells["bm25", WITHOUT].record.mean) == list(map(str, DEFAULT_MEASURES))


def test_the_report_of_a_run_has_a_table_of_aspects_for_that_dataset_only(results: Results) -> None:
    page = run_page(results, Path("results"), False)
    tables = [part for section in page.sections for part in section.parts if isinstance(part, Table)]
    heads = [[column.head for column in table.columns] for table in tables]
    assert [head for head in heads if "A-Recall@10" in head] == [["aspects of MedSci", *NAMES]]


def test_a_comparison_by_aspects_leaves_other_datasets_out(collection: RecordCollection) -> None:
    compared = comparison(collection, "a-recall@10")
    assert compared.datasets == [WITH]
    assert f"{WITHOUT} is left out: it has no labels for A-Recall@10" in compared.notices
    assert comparison(collection, "A-Recall@10", data=["demo"]).datasets == [WITH]
    with pytest.raises(UserError, match=rf"{WITHOUT} has no labels for A-Recall@10"):
        comparison(collection, "A-Recall@10", data=[WITHOUT])
