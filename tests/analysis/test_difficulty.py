"""Why queries are hard."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import r2med
from r2med.analysis.analysis import Analysis, run_analyses
from r2med.analysis.difficulty import (
    NO_ANSWERS,
    NO_REVIEWS,
    NO_TABLE,
    concept_shares,
    group_difference,
    relevant_texts,
)
from r2med.data import load
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Table
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.foundation.text.synonyms import Synonyms
from support.answer_records import answer_record, answered
from support.synthetic_answers import write

DIAG = "demo/MedQA-Diag"
TERMS = [("Dyspnea", "breathlessness"), ("Fatigue", "tiredness"), ("Hypertension", "high blood pressure")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, store: Store) -> Path:
    out = tmp_path_factory.mktemp("results")
    r2med.run(["bm25", "hyde(author) → bm25"], [DIAG], out=out, setup=Setup(store=store))
    return out


def named(done: Analysis, name: str) -> Table:
    return next(table for table in done.sections[0].tables if table.name == name)


def points(results: Path, system: str) -> dict[str, float]:
    records = [json.loads(file.read_text()) for file in results.rglob("*.json")]
    record: dict[str, Any] = next(each for each in records if each.get("system") == system)
    return {query: 100 * scores["nDCG@10"] for query, scores in record["per_query"].items()}


def test_concepts_count_by_the_words_that_relevant_documents_use() -> None:
    table = Synonyms(TERMS)
    query = "A man with breathlessness, tiredness and high blood pressure."
    assert concept_shares(table, query, ["Dyspnea at rest.", "He reports Tiredness."]) == (1 / 3, 1 / 3)
    assert concept_shares(table, query, ["dyspnea", "breathlessness"]) == (0, 2 / 3)  # one has the query's word
    assert np.isnan(concept_shares(table, "?", ["Dyspnea"])).all()
    assert concept_shares(table, query, []) == (0, 1)


def test_the_difference_of_two_groups_of_shares_is_newcombes() -> None:
    first, second = np.repeat([100.0, 0.0], [7, 5]), np.repeat([100.0, 0.0], [3, 17])
    (l1, u1), (l2, u2) = (stats.binomtest(k, n).proportion_ci(method="wilson") for k, n in ((7, 12), (3, 20)))
    p1, p2 = 7 / 12, 3 / 20
    low = p1 - p2 - np.hypot(p1 - l1, u2 - p2)
    high = p1 - p2 + np.hypot(u1 - p1, p2 - l2)
    found = group_difference(first, second)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((100 * (p1 - p2), 100 * low, 100 * high))
    assert group_difference(first[:4], second).low is None  # type: ignore[union-attr]
    assert group_difference(first[:0], second) is None


def test_slices_and_gains_equal_plain_means_of_the_records(results: Path, store: Store, tmp_path: Path) -> None:
    table = tmp_path / "terms.csv"
    table.write_text("concept,term\nWeakness,weak\nWeakness,weakness\nPain,ache\nFracture,broken bone\n")
    done = run_analyses("difficulty", setup=Setup(store=store), results=results, synonyms=table, out=tmp_path / "o")
    dataset = load(DIAG)
    plain, longer = points(results, "bm25"), points(results, "hyde(author) → bm25")
    rows = {row[0]: row[1:] for row in named(done, "difficulty").rows}
    label, number, score = rows["document length"][:3]
    words = {q.id: np.mean([len(text.split()) for text in relevant_texts(dataset, q)]) for q in dataset.queries}
    mine = [query for query, count in words.items() if count <= int(label.split()[2])]
    assert (number, score.value) == (len(mine), pytest.approx(np.mean([plain[q] for q in mine])))
    gains = np.array([longer[query] - plain[query] for query in plain])
    lost, bounds = rows["reasoning"][-1], stats.ttest_1samp(-gains, 0).confidence_interval()
    assert (lost.value, lost.low, lost.high) == pytest.approx((-gains.mean(), *bounds))
    synonyms = Synonyms.read(table)
    shares = {q.id: concept_shares(synonyms, q.text, relevant_texts(dataset, q)) for q in dataset.queries}
    others = [query for query, (other, _) in shares.items() if other > 0]
    if "terminology" in rows:
        assert rows["terminology"][1] == len(others)
    assert {NO_ANSWERS, NO_REVIEWS} <= set(done.sections[0].notes)
    assert "Reasoning: the text of hyde(author) → bm25 moves the score" in page_html(done.page)


def test_recorded_closed_book_answers_are_slices(results: Path, store: Store, tmp_path: Path) -> None:
    dataset = load(DIAG)
    asked = [query.id for query in dataset.queries]
    answers = answered(dataset, {"closed book": asked[:3]})
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    record = answer_record(answers, dataset)
    write(record, folder, answers)
    done = run_analyses("difficulty", setup=Setup(store=store), results=folder, data=[DIAG], out=tmp_path / "o")
    right = np.mean([values["accuracy"] for values in record.answers.per_query["closed book"].values()])
    assert 0 < right < 1 and f"{record.answers.reader} answers {right:.0%}" in page_html(done.page)
    assert not any(note.startswith("Knowledge") for note in done.sections[0].notes)


def folder(root: Path, queries: list[dict[str, str]], texts: dict[str, str], qrels: dict[str, str]) -> str:
    root.mkdir()
    files = {
        "query": queries,
        "corpus": [{"id": name, "text": text} for name, text in texts.items()],
        "qrels": [{"q_id": query, "p_id": document, "score": 1} for query, document in qrels.items()],
    }
    for name, rows in files.items():
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(root)


def test_reviewers_judgement_is_a_slice_and_records_are_not_needed(store: Store, tmp_path: Path) -> None:
    said = ["yes", "yes", "no", "unsure", ""]
    queries = [{"id": f"q{n}", "text": f"word{n}", "needs_inference": each} for n, each in enumerate(said)]
    data = folder(
        tmp_path / "Mine", queries, {"d": "word0", "e": ""}, dict.fromkeys(("q0", "q1", "q2", "q3", "q4"), "d")
    )
    done = run_analyses(
        "difficulty", setup=Setup(store=store), data=[data], results=tmp_path / "none", out=tmp_path / "o"
    )
    rows = {row[0]: row[1:] for row in named(done, "difficulty").rows}
    assert rows["inference"] == ["needs inference", 2, None, "needs no inference", 1, None, None]
    assert "Reviewers: 50%" in page_html(done.page)
    assert NO_TABLE in done.sections[0].notes
    assert any(note.startswith("Scores are left out") for note in done.sections[0].notes)


def test_odd_queries_and_documents_have_a_report(store: Store, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("concept,term\nDyspnea,breathlessness\nFatigue,breathlessness\n")
    data = folder(tmp_path / "Odd", [{"id": "q", "text": "?"}], {"d": "", "e": "x"}, {"q": "d"})
    done = run_analyses(
        "difficulty",
        setup=Setup(store=store),
        data=[data],
        results=tmp_path / "none",
        synonyms=table,
        out=tmp_path / "o",
    )
    page = page_html(done.page)
    assert "no query has a concept of t.csv" in page
    assert "t.csv: 1 term in two concepts" in page
    assert ">nan" not in page
    unjudged = folder(tmp_path / "Unjudged", [{"id": "q", "text": "x"}], {"d": "x"}, {})
    with pytest.raises(UserError, match="relevant document"):
        run_analyses(
            "difficulty", setup=Setup(store=store), data=[unjudged], results=tmp_path / "none", out=tmp_path / "p"
        )
