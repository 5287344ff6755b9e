"""Why queries are hard."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import r2med
from r2med.analysis.analysis import Analysis, rehearse, run_analyses
from r2med.analysis.causes import group_difference
from r2med.analysis.query_causes import NO_LLM, NO_REVIEWS, NO_TABLE, concept_use, relevant_texts
from r2med.data import load
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Table
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.foundation.text.synonyms import Synonyms
from r2med.models.llm.llm_cards import resolve_llm
from support.answer_records import answer_record, answered
from support.graded_controls import graded_controls
from support.scripted_llm import scripted
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
    use = concept_use(table, query, ["Dyspnea at rest.", "He reports Tiredness."])
    assert (use.same, use.other, use.absent) == (1, 1, 1)
    assert (use.gap, use.missing) == (1 / 3, 1 / 3)
    assert concept_use(table, query, ["dyspnea", "breathlessness"]).same == 1  # one document has the query's word
    assert np.isnan(concept_use(table, "?", ["Dyspnea"]).gap)
    assert concept_use(table, query, []).missing == 1


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
    counts = {query.id: len(relevant_texts(dataset, query)) for query in dataset.queries}
    for label, number, share, score, *_ in named(done, "difficulty-relevant-documents").rows:
        mine = [query for query, count in counts.items() if count == int(label[0])]
        assert number == len(mine)
        assert share.value == len(mine) / len(counts)
        assert (score.value if score else None) == (pytest.approx(np.mean([plain[q] for q in mine])) if mine else None)
    gains = np.array([longer[query] - plain[query] for query in plain])
    (row,) = named(done, "difficulty-reasoning").rows
    bounds = stats.ttest_1samp(gains, 0).confidence_interval()
    assert (row[4].value, row[4].low, row[4].high) == pytest.approx((gains.mean(), *bounds))
    assert [each.value for each in row[5:]] == [np.mean(gains > 0), np.mean(gains == 0), np.mean(gains < 0)]
    synonyms = Synonyms.read(table)
    rows = {row[1]: row for row in named(done, "difficulty-queries").rows}
    for query in dataset.queries:
        use = concept_use(synonyms, query.text, relevant_texts(dataset, query))
        assert rows[query.id][2] == use.total
        assert rows[query.id][3] == pytest.approx(use.gap, nan_ok=True)
    assert {NO_LLM, NO_REVIEWS} <= set(done.sections[0].notes)
    assert "Reasoning: the text of hyde(author) → bm25 moves the score" in page_html(done.page)


def test_closed_book_answers_are_a_slice(results: Path, store: Store, tmp_path: Path) -> None:
    queries = load(DIAG).queries
    setup = scripted(
        tmp_path,
        store,
        *graded_controls(queries),
        (["Reference answer", f"Answer:\n<<<\n{queries[0].answer}"], {"why": "it", "grade": "right"}),
        (["Reference answer"], {"why": "x", "grade": "wrong"}),
        ([queries[0].text[:60]], {"answer": queries[0].answer}),
        ([], {"answer": "gout"}),
    )
    given: dict[str, Any] = {"results": results, "data": [DIAG], "queries": 2, "setup": setup}
    assert len(rehearse("difficulty", **given)["closed-book"].unanswered) == 2
    done = run_analyses("difficulty", out=tmp_path / "o", **given)
    assert not rehearse("difficulty", **given)["closed-book"].unanswered
    rows = {row[0]: row for row in named(done, "difficulty-knowledge").rows}
    assert [rows[f"closed-book answer {which}"][1] for which in ("wrong", "right")] == [1, 1]
    assert rows["not known"][1] == len(queries) - 2
    assert "answers 50%" in page_html(done.page)


def test_recorded_closed_book_answers_are_not_asked_again(results: Path, store: Store, tmp_path: Path) -> None:
    dataset = load(DIAG)
    asked = [query.id for query in dataset.queries]
    setup = scripted(tmp_path, store, ([], "I would rather not say."))
    answers = answered(dataset, {"closed book": asked[:3]})
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    write(answer_record(answers, dataset, reader=resolve_llm(setup.setup.llm, setup.setup).spec), folder, answers)
    given: dict[str, Any] = {"results": folder, "data": [DIAG], "setup": setup}
    assert "closed-book" not in rehearse("difficulty", **given)
    rows = {
        row[0]: row
        for row in named(run_analyses("difficulty", out=tmp_path / "o", **given), "difficulty-knowledge").rows
    }
    assert rows["closed-book answer right"][1] == 3


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
    rows = named(done, "difficulty-inference").rows
    assert [(row[0], row[1]) for row in rows] == [
        ("needs inference", 2), ("needs no inference", 1), ("reviewers are unsure", 1), ("not known", 1)
    ]  # fmt: skip
    assert rows[0][2].value == 0.5
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
