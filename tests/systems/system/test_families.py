"""Families: which systems belong together, what they are called, and whose answers are used again."""

from __future__ import annotations

import pytest

from r2med.systems.system import System
from r2med.systems.system.families import families, family_label, reuse_notes
from r2med.systems.system.system_specs import cross_product
from support.facts import each_states


def systems(*specs: str) -> list[System]:
    return [System.parse(calls) for calls in cross_product(specs)]


@pytest.mark.parametrize(
    "typed",
    [
        "bm25 → groupwise(o3-mini)@{10,20,50}",
        "hyde({o3-mini,gpt4}) → bm25",
        "[hyde(gpt4) → bm25 → bge-reranker@{10,20}]+bm25",
        "lamer(gpt4, rounds=1, by=[bm25 → bge-reranker@{5,20}]) → bm25",
        "bm25 → bge-reranker@{50,100} → listwise(gpt4)@20",
    ],
)
def test_what_differs_in_depths_or_llms_is_one_family_and_is_called_as_typed(typed: str) -> None:
    names = [system.name for system in systems(typed)]
    assert families([*names, "bm25"]) == [names]
    assert family_label(names) == typed


def test_samples_and_turns_belong_to_a_family_and_other_settings_do_not() -> None:
    samples = [system.name for system in systems("hyde(gpt4, samples={1,4}) → bm25")]
    turns = [system.name for system in systems("agent(gpt4, turns={4,20}, by=bm25)")]
    apart = ["hyde(gpt4, query=drop) → bm25", "bm25", "bm25(k1=2)", "query2doc(gpt4) → bm25", "minilm", "Contriever-L2"]
    assert families([*samples, *turns, *apart]) == [samples, turns]
    assert family_label(samples) == "hyde(gpt4) → bm25 and 1 more"


def test_the_plan_says_whose_answers_are_used_again() -> None:
    notes = reuse_notes(
        systems(
            "bm25 → pointwise(gpt4, samples={1,2})@{10,20}",
            "hyde(gpt4, samples={1,4}) → bm25",
            "bm25 → bge-reranker@{10,50}",
            "bm25 → groupwise(gpt4)@{10,20}",
            "bm25 → listwise(gpt4)@{20,50}",
            "bm25 → setwise(gpt4)@{10,20}",
            "bm25 → pointwise(gpt4, scores=show)@{10,20}",
            "query2doc({gpt4,o3-mini}) → bm25",
            "bm25",
        )
    )
    yes, no = "use the answers of smaller ones again", "no answers are used again"
    each_states(
        notes,
        ("pointwise", yes),
        ("hyde", yes),
        ("bge-reranker", yes),
        ("groupwise", no),
        ("listwise", no),
        ("setwise", no),
        ("scores=show", no),
    )
