"""The whole way offline: a scripted reader answers the demo, and a scripted judge scores it with the demo's nuggets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med.assessment.answers.answer_controls import CITATION_KINDS, GRADE_KINDS, NUGGET_KINDS, SENTENCES, WORDINGS
from r2med.assessment.answers.answer_page import answer_json, answer_page
from r2med.assessment.answers.answer_plan import planned_answers
from r2med.assessment.answers.answering import AnsweredSystems, plan_answers
from r2med.data.nuggets_file import Nuggets, nuggets_of
from r2med.data.runs.run import Run
from r2med.evaluation.records.record import Record
from r2med.foundation.pages.text_formats import page_markdown
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.text.sentences import sentences

DATA = "demo/Medical-Sciences"


def answers(dataset: r2med.Dataset) -> Iterator[tuple[list[str], Any]]:
    """Yield the rules of the reader. It names the answer, and adds a sentence that no passage supports."""
    for query in dataset.queries:
        text = f"This is {query.answer} [1]. Stars decide it [2]."
        yield [query.text], {"answer": "I cannot answer this." if query.id == "3" else text}


def verdicts(dataset: r2med.Dataset, nuggets: Nuggets, run: Run) -> Iterator[tuple[list[str], Any]]:
    """Yield the rules of a judge that knows the references, the nuggets and the relevant passages by heart."""
    for query in dataset.queries:
        own = nuggets.by_query[query.id]
        bare = query.answer.strip().rstrip(".")
        for right in (*(f"{wording.format(bare)}" for wording in WORDINGS), f"This is {query.answer}"):
            yield [query.text, "Reference answer", f"\nAnswer:\n<<<\n{right}"], {"why": "the same", "grade": "right"}
        numbers = range(1, len(own) + 1)
        for start, found in ((f"1. {own[0].text}", numbers), (f"1. This is {query.answer}", (1,))):
            matches = [_match(n, n in found) for n in numbers]
            yield [query.text, "Nuggets:", f"each sentence:\n<<<\n{start}"], {"nuggets": matches}
        yield [query.text, "Nuggets:"], {"nuggets": [_match(n, False) for n in numbers]}
        [(best, _)] = run.top(query.id, 1)
        [text] = dataset.corpus.texts(dataset.corpus.rows([best]).tolist())
        cited = [f"Sentence:\n<<<\nThis is {query.answer}", f"passages:\n<<<\n{text}"]
        yield cited, {"why": "it says so", "supported": True}
    for text in dataset.corpus.texts(range(len(dataset.corpus))):
        for sentence in sentences(text)[:SENTENCES]:
            yield [f"Sentence:\n<<<\n{sentence}\n", f"passages:\n<<<\n{text}"], {"why": "so", "supported": True}
    abstains = "Reference answer", "\nAnswer:\n<<<\nI cannot answer this."
    yield [*abstains], {"why": "it settles on nothing", "grade": "nothing"}
    yield ["Reference answer"], {"why": "something else", "grade": "wrong"}
    yield ["Sentence:"], {"why": "not there", "supported": False}


def _match(number: int, found: bool) -> dict[str, Any]:
    return {"nugget": number, "sentences": [number] if found else [], "said": "support" if found else "none"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("judged")


@pytest.fixture(scope="module")
def record(place: Path) -> Record:
    store = Store(place / "store")
    dataset = r2med.load(DATA, store)
    nuggets = nuggets_of(dataset)
    assert nuggets
    paths: dict[str, str | Path] = {}
    r2med.run("bm25", DATA, out=place, store=store)
    run = Run.read(next(place.rglob("bm25-*.trec.gz")), encoded=True)
    for name, rules in (("reader", answers(dataset)), ("judge", verdicts(dataset, nuggets, run))):
        paths[name] = place / f"{name}.jsonl"
        lines = [json.dumps({"when": when, "answer": json.dumps(answer)}) for when, answer in rules]
        (place / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    with Runtime(store=store, model_paths=paths, offline=True) as runtime:
        (made,) = r2med.answer(
            "bm25", "reader", DATA, judge="judge", conditions=["closed book", "retrieved"], out=place, setup=runtime
        )
    return made


def test_a_judged_record_has_all_measures(record: Record) -> None:
    assert set(record.answers.mean["retrieved"]) == {
        *(
            "accuracy",
            "nugget-recall",
            "vital-recall",
            "nugget-precision",
            "citation-support",
            "citation-relevance",
        )
    }
    assert record.answers.mean["retrieved"]["accuracy"] == 7 / 8
    assert record.answers.mean["retrieved"]["citation-support"] == 0.5
    assert record.answers.per_query["retrieved"]["0"]["nugget-recall"] == 1 / 4
    assert record.answers.per_query["retrieved"]["0"]["vital-recall"] == 1 / 3
    assert record.answers.per_query["retrieved"]["3"] == {
        "accuracy": 0.0, "nugget-recall": 0.0, "vital-recall": 0.0
    }  # fmt: skip
    assert not {"citation-support", "citation-relevance"} & set(record.answers.mean["closed book"])
    assert record.answers.grades["retrieved"] == {"right": 7, "nothing": 1}
    assert record.answers.abstained("retrieved") == 1


def test_the_record_says_how_far_the_judge_can_be_trusted(record: Record) -> None:
    assert record.answers.judge is not None
    assert set(record.answers.judge.controls) == {*GRADE_KINDS, *NUGGET_KINDS, *CITATION_KINDS}
    assert all(right == asked for right, asked in record.answers.judge.controls.values())
    assert record.answers.judge.agreed == record.answers.judge.both == 0  # no answer is the reference word for word
    assert record.cost_of("judge").calls > 100
    assert record.answers.nuggets
    assert "36 of 36 nuggets were not reviewed by people." in record.answers.notices


def test_the_page_shows_means_with_intervals_and_the_judge(record: Record) -> None:
    answered = AnsweredSystems((record,), (), 0)
    text = page_markdown(answer_page(answered, "results"))
    assert "The judge" in text
    assert "vital-recall: Share of the vital nuggets" in text
    assert json.loads(json.dumps(answer_json(answered)))[0]["judge"]["both"] == 0


def test_a_plan_guesses_the_calls_of_the_judge(tmp_path: Path, store: Store) -> None:
    (tmp_path / "none.jsonl").write_text("")
    paths: dict[str, str | Path] = dict.fromkeys(("reader", "judge"), tmp_path / "none.jsonl")
    with Runtime(store=store, model_paths=paths) as runtime:
        plan = plan_answers(["bm25"], ["reader"], [DATA], runtime, judge="judge", conditions=["relevant"], queries=2)
        rows = {row.name: row.needs[0] for row in planned_answers(plan, repeats=2).rows}
    assert (rows["reader as reader"].calls, rows["reader as reader"].most_calls) == (2 * 2, 2 * 2 * 3)
    assert rows["judge as judge"].calls == 2 * (3 * 80 + 2 * (1 + 1 + 3)), "controls of three kinds, and two answers"
