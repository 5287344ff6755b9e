"""Overlap beside that of other datasets."""

import math
from pathlib import Path

import numpy as np
import pytest

from r2med.analysis.analysis import Analysis, run_analyses
from r2med.analysis.overlap import dataset_overlap
from r2med.analysis.overlap_report import ALL_SETS, COVERAGE, MEASURES, REFERENCE, WEIGHTED, MeasuredDataset
from r2med.data import Dataset, load
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Table
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.foundation.text.english import english

DIAG = "demo/MedQA-Diag"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def report(store: Store, tmp_path_factory: pytest.TempPathFactory) -> tuple[Analysis, Path]:
    out = tmp_path_factory.mktemp("out")
    return run_analyses("overlap", setup=Setup(store=store), data=[DIAG], out=out), out


def named(done: Analysis, name: str) -> Table:
    return next(table for table in done.sections[0].tables if table.name == name)


def test_values_of_queries_equal_sets_of_words(store: Store) -> None:
    dataset = load(DIAG)
    found = MeasuredDataset.of(dataset, dataset_overlap(dataset, store))
    ids = dataset.corpus.ids(range(len(dataset.corpus)))
    texts = {name: set(english(dataset.corpus.text(row))) for row, name in enumerate(ids)}
    holders = {term: sum(term in text for text in texts.values()) for term in set().union(*texts.values())}
    for number, query in enumerate(dataset.queries):
        terms = set(english(query.text))
        relevant = [name for name, grade in dataset.qrels[query.id].items() if grade > 0]
        idf = {term: math.log((len(texts) + 1) / (holders.get(term, 0) + 0.5)) for term in terms}
        wanted = {
            COVERAGE: np.mean([len(terms & texts[name]) / len(terms) for name in relevant]),
            WEIGHTED: np.mean([sum(idf[t] for t in terms & texts[name]) for name in relevant]) / sum(idf.values()),
        }
        for measure, value in wanted.items():
            assert found.values[measure][number] == pytest.approx(value, rel=1e-5), measure


def test_a_dataset_is_beside_the_reference_by_its_mean_and_quartiles(
    report: tuple[Analysis, Path], store: Store
) -> None:
    dataset = load(DIAG)
    values = MeasuredDataset.of(dataset, dataset_overlap(dataset, store)).values[COVERAGE]
    row = named(report[0], "overlap-by-coverage").rows[0]
    assert [row[0], row[2]] == [DIAG, len(values)]
    assert row[3].value == pytest.approx(np.mean(values))
    assert row[4:] == pytest.approx(np.percentile(values, [25, 50, 75]))


def test_the_reference_has_values_and_states_its_origin(report: tuple[Analysis, Path]) -> None:
    assert set(REFERENCE.values) == set(MEASURES)
    assert len({len(values) for values in REFERENCE.values.values()}) == 1
    scifact = next(row for row in named(report[0], "overlap-by-coverage").rows if row[0] == "SciFact")
    assert list(scifact[1:3]) == ["reference", 300]
    assert round(scifact[3].value, 2) == 0.57
    assert any(note.startswith("SciFact: BEIR's test set: 300 claims") for note in report[0].sections[0].notes)
    assert not any(table.name == "overlap-by-cosine" for table in report[0].sections[0].tables)  # no model was named


def test_odd_datasets_have_tables_without_errors(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {
        "one": Dataset.of({"q": "pale skin"}, {"d": "skin"}, {"q": {"d": 1}}, "one"),
        "mute": Dataset.of({"q": "the ?", "r": "pale"}, {"d": "skin", "e": ""}, {"q": {"d": 1}, "r": {"e": 1}}, "mute"),
        "unjudged": Dataset.of({"q": "x"}, {"d": "x"}, None, "unjudged"),
    }  # fmt: skip
    monkeypatch.setattr("r2med.analysis.material.loaded", lambda name, store: odd[name])
    done = run_analyses("overlap", setup=Setup(store=store), data=list(odd), out=tmp_path)
    rows = {row[0]: row for row in named(done, "overlap-by-coverage").rows}
    assert rows["one"][3].value == 0.5
    assert rows["mute"][3].value == 0.0  # no document has a word of these queries
    assert rows["unjudged"][2:4] == [0, None]
    assert rows[ALL_SETS][2] == 3
    assert "nan" not in page_html(done.page).replace("nanm", "")
