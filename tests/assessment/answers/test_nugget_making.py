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
        assert len(plan_nuggets(DATASET, "script", runtime).plan(runtime.setup).rows) == 1


@pytest.mark.parametrize("facts", [[], [fact(f"fact {n}") for n in range(40)], [fact("x", "huge")], "text"])
def test_nuggets_of_another_form_are_not_used(tmp_path: Path, store: Store, facts: Any) -> None:
    with pytest.raises(UserError, match="script wrote no nuggets that can be used"):
        made(tmp_path, store, ([], {"nuggets": facts}))


def test_a_dataset_without_references_is_refused(tmp_path: Path, store: Store) -> None:
    bare = Dataset.of({"a": "why?"}, {"d": "text"}, name="bare")
    with scripted(tmp_path, store) as runtime, pytest.raises(UserError, match="bare has no reference answers"):  # type: ignore[attr-defined]
        plan_nuggets(bare, "script", runtime)
