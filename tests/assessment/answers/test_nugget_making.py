"""An LLM takes reference answers apart into nuggets, once for each question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from r2med import Dataset, UserError
from r2med.assessment.answers.nugget_making import MadeNuggets, plan_nuggets
from r2med.data.dataset import Query
from r2med.data.nuggets_file import read_nuggets
from r2med.foundation.store import Store
from support.scripted_llm import scripted
from support.traces import foreign_names, kind_of, read_spans, root_of, traces

DATASET = Dataset.of(
    [Query("a", "why?", "Because of the liver."), Query("b", "how?", "By the heart."), Query("c", "who?")],
    {"d": "text"},
    name="small",
)


def fact(text: str, importance: str = "vital") -> dict[str, str]:
    return {"text": text, "importance": importance}


def made(tmp_path: Path, store: Store, *rules: tuple[list[str], Any]) -> MadeNuggets:
    with scripted(tmp_path, store, *rules) as runtime:  # type: ignore[attr-defined]
        return plan_nuggets(DATASET, "script", runtime).make()


def test_each_reference_is_asked_once_and_a_repeated_fact_counts_once(tmp_path: Path, store: Store) -> None:
    facts = [fact("It is the liver."), fact("The liver IS it!", "okay"), fact("It hurts.", "okay")]
    found = made(tmp_path, store, (["the liver"], {"nuggets": facts}), (["heart"], "no JSON"))
    assert [(each.id, each.text, each.vital) for each in found.nuggets] == [
        ("n1", "It is the liver.", True),
        ("n2", "It hurts.", False),
    ]
    assert {each.by for each in found.nuggets} == {"script"}
    assert found.failures == {"b": "unreadable"}
    found.nuggets.write(tmp_path / "n.jsonl")
    assert read_nuggets(tmp_path / "n.jsonl", DATASET) == found.nuggets
    with scripted(tmp_path, store, (["the liver"], {"nuggets": facts}), (["heart"], "no JSON")) as runtime:  # type: ignore[attr-defined]
        assert len(plan_nuggets(DATASET, "script", runtime).preview().requests) == 2


def test_each_question_is_one_trace_and_one_without_nuggets_has_failed(tmp_path: Path, store: Store) -> None:
    rules = (["the liver"], {"nuggets": [fact("It is the liver.")]}), (["heart"], "no JSON")
    with scripted(tmp_path, store, *rules) as runtime:  # type: ignore[attr-defined]
        traced = runtime.with_settings(trace=tmp_path / "trace.jsonl")
        plan_nuggets(DATASET, "script", traced).make()
    spans = read_spans(tmp_path / "trace.jsonl")
    found = {str(root_of(trace).attributes["r2med.query.id"]): trace for trace in traces(spans)}
    assert {query: [kind_of(each) for each in trace] for query, trace in found.items()} == {
        "a": ["LLM", "CHAIN"],
        "b": ["LLM", "LLM", "LLM", "CHAIN"],
    }
    assert [root_of(found[query]).status.description for query in "ab"] == [None, "unreadable"]
    assert all(each.attributes["llm.token_count.total"] > 0 for each in spans if kind_of(each) == "LLM")
    assert "liver" not in (tmp_path / "trace.jsonl").read_text()
    assert not foreign_names(spans)


@pytest.mark.parametrize("facts", [[], [fact(f"fact {n}") for n in range(40)], [fact("x", "huge")], "text"])
def test_nuggets_of_another_form_are_not_used(tmp_path: Path, store: Store, facts: Any) -> None:
    with pytest.raises(UserError, match="script wrote no nuggets that can be used"):
        made(tmp_path, store, ([], {"nuggets": facts}))


def test_a_dataset_without_references_is_refused(tmp_path: Path, store: Store) -> None:
    bare = Dataset.of({"a": "why?"}, {"d": "text"}, name="bare")
    with scripted(tmp_path, store) as runtime, pytest.raises(UserError, match="bare has no reference answers"):  # type: ignore[attr-defined]
        plan_nuggets(bare, "script", runtime)
