"""What queries share with their gold documents."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from r2med.analysis.analysis import run_analyses
from r2med.analysis.overlap import HARDEST, RANDOM, RELEVANT, cosines, dataset_overlap
from r2med.data import Dataset, load
from r2med.foundation.pages.cells import Estimate
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.retriever import SearchQuery

MINE = Dataset.of(
    {"q1": "the bread that tires", "q2": "pale skin", "q3": "nobody judged this"},
    {"d1": "Breads tire the bowel.", "d2": "Iron and skin.", "d3": "Pale skin, pale bread.", "d4": "Nothing."},
    {"q1": {"d1": 1, "d3": 0}, "q2": {"d2": 2}},
)


def test_stems_are_compared_and_stop_words_do_not_count(store: Store) -> None:
    _, overlap = dataset_overlap(MINE, store)[RELEVANT]
    assert overlap.coverage.tolist() == [1.0, 0.5]


def test_rare_terms_weigh_more(store: Store) -> None:
    idf = np.log((4 + 1) / (np.array([1, 2]) + 0.5))  # pale is in one document, skin in two
    _, overlap = dataset_overlap(MINE, store)[RELEVANT]
    assert overlap.weighted[1] == pytest.approx(idf[1] / idf.sum())


def test_the_hardest_negative_is_the_best_that_is_not_gold(store: Store) -> None:
    pairs, _ = dataset_overlap(MINE, store)[HARDEST]
    assert MINE.corpus.ids(pairs.rows) == ["d3", "d3"]


def test_random_documents_are_never_gold(store: Store) -> None:
    pairs, _ = dataset_overlap(MINE, store)[RANDOM]
    assert {(int(q), int(r)) for q, r in zip(pairs.queries, pairs.rows, strict=True)}.isdisjoint({(0, 0), (1, 1)})


def test_bm25_scores_of_pairs_are_those_of_a_search(store: Store) -> None:
    dataset = load("demo/MedQA-Diag")
    queries = [SearchQuery(query) for query in dataset.queries]
    run = BM25().search(dataset, queries, 100, Runtime(store=store)).run
    for pairs, overlap in dataset_overlap(dataset, store).values():
        for query, row, score in zip(pairs.queries, pairs.rows, overlap.bm25, strict=True):
            searched = dict(zip(run.rows[query].tolist(), run.scores[query].tolist(), strict=True))
            assert score == pytest.approx(searched.get(int(row), 0.0), rel=1e-6)


def test_a_dataset_without_judgements_has_no_pairs(store: Store) -> None:
    unjudged = Dataset.of({"q": "x"}, {"d": "x"})
    assert [len(overlap.coverage) for _, overlap in dataset_overlap(unjudged, store).values()] == [0, 0, 0]


MODEL = """
import numpy as np

class Model:
    def encode(self, texts):
        return np.array([["bread" in text.lower(), "skin" in text] for text in texts], dtype=np.float32)
"""


def test_the_hardest_negative_of_a_model_is_its_nearest_and_a_vector_of_zeros_is_like_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "two_words.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    scored = cosines(MINE, "py:two_words:Model", Runtime(store=store))
    assert scored[RELEVANT][1].tolist() == [1.0, 1.0]
    assert scored[HARDEST][1] == pytest.approx([0.5**0.5] * 2)
    assert set(scored[RANDOM][1].round(3).tolist()) <= {0.0, 0.707}


def test_the_interval_of_a_mean_bm25_score_is_in_scores_and_not_in_shares(store: Store, tmp_path: Path) -> None:
    dataset = load("demo/MedQA-Diag")
    done = run_analyses("overlap", setup=Setup(store=store), data=["demo/MedQA-Diag"], out=tmp_path)
    table = next(table for table in done.sections[0].tables if table.name == "overlap-bm25")
    pairs, overlap = dataset_overlap(dataset, store)[RELEVANT]
    best = [max(overlap.bm25[pairs.queries == number]) for number in range(len(dataset.queries))]
    reach = stats.t.ppf(0.975, len(best) - 1) * np.std(best, ddof=1) / np.sqrt(len(best))
    found = table.rows[0][1]
    assert (found.value, found.low, found.high) == pytest.approx(
        (np.mean(best), np.mean(best) - reach, np.mean(best) + reach)
    )


def test_all_datasets_together_have_averages_over_datasets(store: Store, tmp_path: Path) -> None:
    names = ["demo/MedQA-Diag", "demo/MedXpertQA-Exam", "demo/Biology"]
    done = run_analyses("overlap", setup=Setup(store=store), data=names, out=tmp_path / "out")
    tables = {table.name: table for table in done.sections[0].tables}
    for name, place in (("overlap-terms", -1), ("overlap-bm25", 1)):
        rows = [row for row in tables[name].rows if name != "overlap-terms" or row[2] == RELEVANT]
        values = {str(row[0]): row[place].value for row in rows if isinstance(row[place], Estimate)}
        assert values["all datasets"] == pytest.approx(sum(values[each] for each in names) / 3)
    assert tables["overlap-terms"].rows[-1][1] == 24
