"""The words that say which labels scored records."""

from __future__ import annotations

from typing import Any

from r2med import run
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import OverlayFacts
from r2med.evaluation.records.used_labels import published_name, used_labels


def test_overlays_are_counted_over_datasets_and_mixed_labels_are_named() -> None:
    record = run("bm25", "demo/Biology", out=None).records[0]

    def labelled(name: str, *overlays: OverlayFacts) -> Record:
        changes: dict[str, Any] = {"name": name, "overlays": overlays}
        return record.model_copy(update={"dataset": record.dataset.model_copy(update=changes)})

    judged = OverlayFacts(name="judged", digest="d", labels=700, reviewed=20)
    both = [labelled("a+judged", judged), labelled("b+judged", judged)]
    assert used_labels([record]) == "as published"
    assert used_labels([*both, both[0]]) == "with overlay judged (1,400 labels, 40 of people)"
    assert used_labels([record, both[0]]) == (
        "as published for demo/Biology; with overlay judged (700 labels, 20 of people) for a+judged"
    )
    marked = record.dataset.model_copy(update={"judge_test": "judge not tested"})
    assert used_labels([record.model_copy(update={"dataset": marked})]) == "as published (judge not tested)"
    passed = record.dataset.model_copy(update={"judge_test": "judge tested: 39 of 40 controls right"})
    assert used_labels([record.model_copy(update={"dataset": passed})]) == "as published"
    untested = OverlayFacts(name="judged", digest="d", labels=7, trust="not tested")
    assert used_labels([labelled("a+judged", untested)]) == "with overlay judged (7 labels, judge not tested)"
    assert published_name(both[0].dataset) == "a"
    assert published_name(labelled("a+b").dataset) == "a+b"
