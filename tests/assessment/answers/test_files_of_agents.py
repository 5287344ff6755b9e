"""Run files of other agents: what they leave out, repeat or state wrongly gains nothing and stops nothing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med.assessment.answers.answering import AnswerRecord
from r2med.evaluation.records.answer_record import GivenAnswer
from r2med.foundation.net.offline import offline
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.agents.agent_run_files import AgentRunFile, AgentRunFolder, trace_of_file
from support.datasets import r2med_folder


def run_file(query: str = "q1", answer: str = "Gout [Text-1].", **changed: Any) -> dict[str, Any]:
    output = json.dumps([{"docid": "Text-1"}])
    search = {"type": "tool_call", "tool_name": "search", "arguments": '{"query": "pain"}', "output": output}
    return {
        "query_id": query,
        "status": "completed",
        "tool_call_counts": {"search": 1},
        "retrieved_docids": ["Text-1"],
        "result": [search, {"type": "output_text", "output": answer}],
        **changed,
    }


def scored(place: Path, *files: dict[str, Any]) -> tuple[AnswerRecord, dict[str, GivenAnswer]]:
    """Return the record of run files about the questions q1 and q2, and its answers by question."""
    documents = [{"id": f"Text-{n}", "text": f"passage {n}"} for n in range(3)]
    queries = [{"id": name, "text": f"What is {name} here?", "answer": "Gout"} for name in ("q1", "q2")]
    qrels = [{"q_id": name, "p_id": f"Text-{n}", "score": 1} for name in ("q1", "q2") for n in (1, 2)]
    r2med_folder(place / "set", documents, queries, qrels)
    runs = place / "runs"
    runs.mkdir()
    for number, file in enumerate(files):
        (runs / f"run_{number}.json").write_text(json.dumps(file))
    with Runtime(store=Store(place / "store")) as opened, offline():
        (record,) = r2med.answer(
            f"agent-run:{runs}", data=place / "set", conditions="searched", out=place / "out", setup=opened
        )
    answers = record.given(next((place / "out").rglob("*.answers.json")).parent)
    return record, {each.query: each for each in answers}


def test_a_question_without_a_file_has_found_nothing_and_is_wrong_also_offline(tmp_path: Path) -> None:
    record, given = scored(tmp_path, run_file())
    means = record.mean["searched"]
    assert (means["accuracy"], means["returned-recall"], means["cited-recall"]) == (0.5, 0.25, 0.25)
    assert given["q2"].scores == {"accuracy": 0, "undecided": 0, **dict.fromkeys(STEPS, 0)}
    assert record.searching["searches"] == 0.5


STEPS = ("returned-recall", "shown-recall", "cited-recall")


def test_of_two_files_about_a_question_the_second_does_not_get_the_verdict_of_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record, given = scored(tmp_path, run_file(), run_file(answer="Measles"))
    assert given["q1"].text == "Gout [1]."
    assert record.as_browsecomp["files"] == 2 and record.as_browsecomp["accuracy"] == 50.0


def trace_of(file: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    corpus = r2med.Dataset.of({"q1": "q"}, {"Text-1": "one", "Text-2": "two"}, {}).corpus
    read = AgentRunFolder((AgentRunFile.parse(file),))
    return trace_of_file(read.files[0], read.search_steps, corpus)


def test_files_without_any_answer_have_no_step_of_citations(tmp_path: Path) -> None:
    trace = trace_of(run_file(result=run_file()["result"][:1], status="logged"), tmp_path)
    assert trace["steps"].keys() == {"returned", "shown"}


END = {"type": "output_text", "output": "Gout [Text-1]."}


@pytest.mark.parametrize(
    ("changed", "steps", "searches"),
    [
        ({"tool_call_counts": {"search": 3, "get_document": 2}}, {"returned", "shown", "cited"}, 3),
        ({"retrieved_docids": None, "result": [END], "tool_call_counts": {}}, set(), 0),
        ({"retrieved_docids": [None, {"docid": "x"}, ["x"], True], "result": [END]}, set(), 1),
        (
            {"tool_call_counts": {}, "result": [{"type": "tool_call", "tool_name": ["x"]}, *run_file()["result"]]},
            {"returned", "shown", "cited"},
            1,
        ),
    ],
)
def test_only_steps_and_searches_that_files_show_are_counted(
    changed: dict[str, Any], steps: set[str], searches: int, tmp_path: Path
) -> None:
    trace = trace_of(run_file(**changed), tmp_path)
    assert trace["steps"].keys() == steps and trace["total"]["searches"] == searches


@pytest.mark.parametrize(
    "changed",
    [
        {"retrieved_docids": "Text-1"},
        {"tool_call_counts": {"search": 10**400}},
        {"usage": {"input_tokens": -1}},
        {"query_id": None},
    ],
)
def test_a_file_with_impossible_values_cannot_be_read(changed: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        AgentRunFile.parse(run_file(**changed))


def test_an_answer_that_is_not_a_text_is_no_answer() -> None:
    assert not AgentRunFile.parse(run_file(result=[{"type": "output_text", "output": ["Gout"]}])).answer


def test_what_is_not_a_file_is_named_as_unreadable(tmp_path: Path) -> None:
    (tmp_path / "broken.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "run.json").write_text(json.dumps(run_file()))
    read = AgentRunFolder.read(tmp_path)
    assert len(read.files) == 1 and read.unreadable == ("broken.json", "folder.json", "pipe.json")
