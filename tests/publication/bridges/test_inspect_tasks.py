"""Inspect: a task of ours runs with Inspect's mock model, and its log has our scores."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import r2med
from r2med import System, UserError
from r2med.data import load
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.publication.bridges.inspect_tasks import MAX_MESSAGES, MEASURES, scored_trace
from r2med.publication.bridges.inspect_traces import trace_of_messages
from support.searching_agents import village


@pytest.fixture
def place(tmp_path: Path) -> Path:
    village(tmp_path / "set", ["finder", "looper", "guesser"])
    return tmp_path


def test_a_conversation_of_inspect_is_scored_as_every_agent(place: Path) -> None:
    dataset = load(place / "set", Store(place / "store"))
    call = SimpleNamespace(id="1", function="search", arguments={"query": "finder"})
    opened = SimpleNamespace(id="2", function="get_document", arguments={"docid": "finder-alpha"})
    messages = [
        SimpleNamespace(role="assistant", tool_calls=[call]),
        SimpleNamespace(role="tool", tool_call_id="1", text='[{"docid": "finder-alpha"}, {"docid": "finder-n0"}]'),
        SimpleNamespace(role="assistant", tool_calls=[opened]),
        SimpleNamespace(role="tool", tool_call_id="2", text='{"docid": "finder-alpha", "text": "…"}'),
        SimpleNamespace(role="assistant", tool_calls=None),
    ]
    said = "Illness finder [finder-alpha, finder-n0].\nConfidence: 90%"
    values, text = scored_trace(trace_of_messages(messages, said), dataset.queries[0], dataset)
    assert text == "Illness finder [1, 2]."
    expected = {"citation-relevance": 0.5, "confidence": 0.9}
    steps = dict.fromkeys(("returned-recall", "shown-recall", "opened-recall", "cited-recall"), 1 / 3)
    assert values == pytest.approx({**expected, **steps})
    assert set(values) == set(MEASURES)


def test_without_inspect_one_line_says_what_to_install(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)  # so it cannot be imported, even if it is installed
    with pytest.raises(UserError, match="pip install inspect_ai"):
        r2med.inspect_task(place / "set")


def test_the_task_runs_with_inspects_mock_model_and_its_log_has_our_scores(place: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai", reason="its fsspec conflicts: run this in an environment of its own")
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    search = ModelOutput.for_tool_call("mockllm/model", "search", {"query": "finder evidence"})
    outputs = [
        search,
        ModelOutput.for_tool_call("mockllm/model", "get_document", {"docid": "finder-alpha"}),
        ModelOutput.from_content("mockllm/model", "Illness finder [finder-alpha].\nConfidence: 80%"),
        ModelOutput.from_content("mockllm/model", "Neither a citation nor a confidence."),
        *[search] * 100,  # until it is stopped
    ]
    for output in outputs:  # otherwise the mock model fetches a tokenizer from the network to count its tokens
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    system = System.parse("bm25", Runtime(store=Store(place / "store")))
    task = r2med.inspect_task(place / "set", system, k=3)
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(place / "logs"), display="none", max_samples=1)
    assert log.status == "success", log.error
    read = read_eval_log(log.location)
    ended, *others = (next(iter(sample.scores.values())).value for sample in read.samples)
    assert ended["accuracy"] == 1 and ended["returned-recall"] == 1
    assert ended["opened-recall"] == pytest.approx(1 / 3)
    assert ended["brier"] == pytest.approx(0.04)
    assert [other["accuracy"] for other in others] == [0, 0]
    assert max(len(sample.messages) for sample in read.samples) == MAX_MESSAGES
    means = {score.name: score.metrics["mean"].value for score in read.results.scores}
    assert means["accuracy"] == pytest.approx(1 / 3) and means["confidence"] == pytest.approx(0.8)
