"""Traces of answered questions: one for each, with what the system did, what was read and what the reader said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opentelemetry.trace import StatusCode

import r2med
from r2med.data.dataset import Query
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.traces import foreign_names, kind_of, read_spans, root_of, traces, tree

SYSTEM = "hyde(script) → bm25 → listwise(script)@3"
ORGANS = ("liver", "heart")
DATASET = r2med.Dataset.of(
    [Query("liver", "what ails the liver", "hepatitis"), Query("heart", "what ails the heart", "angina")],
    {
        f"{organ}-{number}": f"The {organ} is ill, says text {number}."
        for organ in ("liver", "heart")
        for number in "abc"
    },
    {organ: {f"{organ}-a": 1} for organ in ("liver", "heart")},
    name="small",
)
RULES: list[tuple[list[str], str]] = [
    (["liver", "<passage 1"], "[2] > [1] > [3]"),
    (["heart", "<passage 1"], "[3] > [1] > [2]"),
    (["one JSON object", "ails the liver", "[1] "], json.dumps({"answer": "It is hepatitis [1]."})),
    (["one JSON object", "ails the liver"], json.dumps({"answer": "It is gout."})),
    (["one JSON object"], "no JSON"),
    (["liver"], "A secret passage about the liver."),
    ([], "Another passage about the heart."),
]


def answered(place: Path, **settings: Any) -> Path:
    """Answer two questions with a trace, and return its file."""
    file = place / "script.jsonl"
    file.write_text("".join(json.dumps({"when": when, "answer": answer}) + "\n" for when, answer in RULES))
    setup = {"store": Store(place / "store"), "model_paths": {"script": file}, "trace": place / "trace.jsonl"}
    with Runtime(**setup, **settings) as runtime:
        r2med.answer(
            SYSTEM, "script", DATASET, conditions=["closed book", "retrieved"], out=place / "out", setup=runtime
        )
    return place / "trace.jsonl"


def test_each_question_is_one_trace_with_the_stages_the_passages_and_the_calls_of_the_reader(tmp_path: Path) -> None:
    spans = read_spans(answered(tmp_path))
    assert not foreign_names(spans)
    system, *questions = sorted(traces(spans), key=lambda trace: "r2med.query.id" in (root_of(trace).attributes or {}))
    assert tree(system) == {f"CHAIN {SYSTEM}": ["CHAIN hyde(script)", "CHAIN bm25", "CHAIN listwise(script)@3"]}
    [heart, liver] = sorted(questions, key=lambda trace: str(root_of(trace).attributes["r2med.query.id"]))
    found = tree(liver)
    assert found == {
        f"CHAIN {SYSTEM}": [
            *("LLM script", "RETRIEVER bm25", "RERANKER listwise(script)@3"),
            *("CHAIN script, closed book", "CHAIN script, retrieved"),
        ],
        "RERANKER listwise(script)@3": ["LLM script"],
        "CHAIN script, closed book": ["LLM script"],
        "CHAIN script, retrieved": [f"RETRIEVER {SYSTEM}", "LLM script"],
    }
    reranked = next(each.attributes for each in liver if kind_of(each) == "RERANKER")
    read = next(each.attributes for each in liver if each.name == SYSTEM and kind_of(each) == "RETRIEVER")
    places = range(3)
    assert [read[f"retrieval.documents.{place}.document.id"] for place in places] == [
        reranked[f"reranker.output_documents.{place}.document.id"] for place in places
    ]
    last = next(each for each in liver if each.name == "script, retrieved")
    assert (last.attributes["r2med.condition"], last.attributes["r2med.status"]) == ("retrieved", "answered")
    # The other reader's answers are never JSON. Each question is asked three times, and then it has failed.
    failed = [each for each in heart if each.name.startswith("script, ")]
    assert {(each.status.status_code, each.status.description) for each in failed} == {(StatusCode.ERROR, "unreadable")}
    assert tree(heart)["CHAIN script, closed book"] == ["LLM script"] * 3
    for each in heart + liver:
        inside = [other for other in heart + liver if other.parent and other.parent.span_id == each.context.span_id]
        assert all(each.start_time <= part.start_time <= part.end_time <= each.end_time for part in inside)


def test_the_texts_of_questions_passages_and_answers_are_written_only_on_request(tmp_path: Path) -> None:
    texts = ("what ails the liver", "says text a", "A secret passage", "It is hepatitis")
    written = answered(tmp_path).read_text("utf-8")
    assert not [text for text in texts if text in written]
    for record in (tmp_path / "out").rglob("*.answers.json"):
        record.unlink()
    (tmp_path / "trace.jsonl").unlink()
    spans = read_spans(answered(tmp_path, trace_content=True))
    assert not foreign_names(spans)
    by_name = {each.name: each.attributes for each in spans if each.attributes.get("r2med.query.id") == "liver"}
    assert by_name["script, retrieved"]["input.value"] == "what ails the liver"
    assert by_name["script, retrieved"]["output.value"] == "It is hepatitis [1]."
    read = next(each.attributes for each in spans if each.name == SYSTEM and kind_of(each) == "RETRIEVER")
    assert "says text" in str(read["retrieval.documents.0.document.content"])
    # The system has a record, so only the readers did something, and the journal had all their answers.
    assert {kind_of(each) for each in spans} == {"CHAIN", "RETRIEVER", "LLM"}
    assert all(each.attributes["r2med.from_journal"] for each in spans if kind_of(each) == "LLM")
