"""Overlap beside that of other datasets."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from r2med.analysis.analysis import Analysis, run_analyses
from r2med.analysis.overlap import dataset_overlap
from r2med.analysis.overlap_context import ALL, REFERENCES, THRESHOLDS
from r2med.analysis.overlap_values import COVERAGE, JACCARD, MEASURES, RELATIVE_BM25, WEIGHTED, OverlapValues
from r2med.data import Dataset, load
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Curves, Table
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.foundation.text.english import english
from r2med.systems.retrieve.bm25 import BM25, BM25Retriever
from r2med.systems.retrieve.retriever import SearchQuery

DIAG = "demo/MedQA-Diag"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def report(store: Store, tmp_path_factory: pytest.TempPathFactory) -> tuple[Analysis, Path]:
    out = tmp_path_factory.mktemp("out")
    return run_analyses("overlap", setup=Setup(store=store), data=[DIAG], thresholds=[0.25, 0.5], out=out), out


def named(done: Analysis, name: str) -> Table:
    return next(table for table in done.sections[0].tables if table.name == name)


def test_values_of_queries_equal_sets_of_words_and_a_search_of_the_whole_corpus(store: Store) -> None:
    dataset = load(DIAG)
    found = OverlapValues.of(dataset, dataset_overlap(dataset, store))
    ranked = BM25Retriever(BM25()).index(dataset, store)
    run = ranked.search([SearchQuery(query) for query in dataset.queries], len(dataset.corpus)).run
    ids = dataset.corpus.ids(range(len(dataset.corpus)))
    texts = {name: set(english(dataset.corpus.text(row))) for row, name in enumerate(ids)}
    holders = {term: sum(term in text for text in texts.values()) for term in set().union(*texts.values())}
    for number, query in enumerate(dataset.queries):
        terms = set(english(query.text))
        relevant = [name for name, grade in dataset.qrels[query.id].items() if grade > 0]
        idf = {term: math.log((len(texts) + 1) / (holders.get(term, 0) + 0.5)) for term in terms}
        wanted = {
            JACCARD: np.mean([len(terms & texts[name]) / len(terms | texts[name]) for name in relevant]),
            COVERAGE: np.mean([len(terms & texts[name]) / len(terms) for name in relevant]),
            WEIGHTED: np.mean([sum(idf[t] for t in terms & texts[name]) for name in relevant]) / sum(idf.values()),
        }
        found_rows = run.rows[number][run.rows[number] >= 0]
        scores = dict(zip(dataset.corpus.ids(found_rows), run.scores[number].tolist(), strict=False))
        wanted[RELATIVE_BM25] = max(scores.get(name, 0.0) for name in relevant) / max(scores.values())
        for measure, value in wanted.items():
            assert found.values[measure][number] == pytest.approx(value, rel=1e-5), measure


def test_shares_below_thresholds_are_counted_with_wilsons_interval(report: tuple[Analysis, Path], store: Store) -> None:
    dataset = load(DIAG)
    values = OverlapValues.of(dataset, dataset_overlap(dataset, store)).values[COVERAGE]
    table = named(report[0], "overlap-by-coverage")
    assert table.heads[-2:] == ("below 0.25", "below 0.5")
    row = table.rows[0]
    assert [row[0], row[2]] == [DIAG, len(values)]
    assert row[4:7] == pytest.approx(np.percentile(values, [25, 50, 75]))
    for share, threshold in zip(row[7:], (0.25, 0.5), strict=True):
        count = sum(value < threshold for value in values.tolist())
        bounds = stats.binomtest(count, len(values)).proportion_ci(method="wilson")
        assert (share.value, share.low, share.high) == pytest.approx((count / len(values), *bounds))
    assert isinstance(table.chart, Curves)
    curve = table.chart.series[DIAG]
    assert [(x, y.value) for x, y in curve] == [(x, np.mean(values < x)) for x in np.arange(21) / 20]


def test_references_have_values_and_state_their_origin(report: tuple[Analysis, Path]) -> None:
    for each in REFERENCES:
        assert set(each.values) == set(MEASURES)
        assert len({len(values) for values in each.values.values()}) == 1
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
    rows = {row[0]: row for row in named(done, "overlap-by-relative-bm25").rows}
    assert rows["one"][3].value == 1.0
    assert rows["mute"][3] is None  # no document has a word of these queries
    assert rows["unjudged"][2:4] == [0, None]
    assert rows[ALL][2] == 3
    assert "nan" not in page_html(done.page).replace("nanm", "")
    assert len(named(done, "overlap-by-coverage").heads) == 7 + len(THRESHOLDS)
