"""Traces: a span for each thing that a stage did, which OpenTelemetry and OpenInference can read; texts on request."""

import base64
import errno
import json
import os
import re
import signal
from typing import Any

import numpy as np
import pytest
from opentelemetry.trace import StatusCode

import r2med as package
from r2med import Setup, UserError
from r2med.data import Corpus, Dataset, Qrels
from r2med.foundation.core.activities import Activity, doing, happened
from r2med.foundation.engine.trace_file import TraceFile
from r2med.foundation.engine.tracing import tracing
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.system import System
from support.chat_server import answer, refuse
from support.datasets import LIVE_DOCUMENTS
from support.processes import PATIENCE, started
from support.traces import foreign_names, kind_of, read_spans, tree

SYSTEM = "hyde(some-model) → bm25 → listwise(some-model)@3"
QUESTION = "a swollen knee, iron and gluten"


@pytest.fixture
def ask(chat_server, marked_keys, tmp_path):
    """Ask a system a question, with a trace; return the outcome and the spans that this wrote."""

    def asked(spec: str = SYSTEM, question: str = QUESTION, home: str = "home", **setup: Any):
        trace = tmp_path / "trace.jsonl"
        trace.unlink(missing_ok=True)
        store = Store(tmp_path / home)
        settings = {"trace": trace, "base_url": chat_server.address, "attempts": 1, **setup}
        with Runtime(store=store, **settings) as runtime:
            dataset = Dataset("small", (), Corpus.of(LIVE_DOCUMENTS), Qrels({}))
            outcome = System.parse(spec, runtime).answer(dataset, question, 3, store)
        return outcome, read_spans(trace)

    return asked


def test_a_question_is_one_trace_with_a_span_for_each_stage_and_call(ask, chat_server):
    chat_server.script = [answer("bowel and bread"), answer("[2] > [1]")]
    outcome, spans = ask()
    assert len({each.context.trace_id for each in spans}) == 1
    assert tree(spans) == {
        f"CHAIN {SYSTEM}": ["CHAIN hyde(some-model)", "RETRIEVER bm25", "RERANKER listwise(some-model)@3"],
        "CHAIN hyde(some-model)": ["LLM some-model"],
        "RERANKER listwise(some-model)@3": ["LLM some-model"],
    }
    assert all(each.start_time <= each.end_time for each in spans)
    by_kind = {kind_of(each): each.attributes for each in spans}
    for kind, prefix, run in (
        ("RETRIEVER", "retrieval.documents", outcome.searched.run),
        ("RERANKER", "reranker.input_documents", outcome.searched.run),
        ("RERANKER", "reranker.output_documents", outcome.run),
    ):
        for place, (identifier, score) in enumerate(run.top("question")):
            assert by_kind[kind][f"{prefix}.{place}.document.id"] == identifier
            assert by_kind[kind][f"{prefix}.{place}.document.score"] == pytest.approx(score)
    llm = by_kind["LLM"]
    assert llm["llm.model_name"] == "some-model" and llm["llm.finish_reason"] == "stop"
    assert llm["llm.token_count.total"] == llm["llm.token_count.prompt"] + llm["llm.token_count.completion"] > 0
    assert json.loads(by_kind["CHAIN"]["output.value"]) == [each for each, _ in outcome.run.top("question")]


def test_texts_are_written_only_on_request(ask, chat_server, tmp_path):
    texts = ("swollen knee", "coeliac disease", "bowel and bread", "[2] > [1]")
    chat_server.script = [answer("bowel and bread"), answer("[2] > [1]")]
    ask()
    written = (tmp_path / "trace.jsonl").read_text(encoding="utf-8")
    assert not [text for text in texts if text in written]
    _, spans = ask(trace_content=True)  # the answers are in the journal
    written = (tmp_path / "trace.jsonl").read_text(encoding="utf-8")
    assert [text for text in texts if text in written] == list(texts)
    calls = [each.attributes for each in spans if kind_of(each) == "LLM"]
    assert calls[0]["llm.output_messages.0.message.content"] == "bowel and bread"
    assert QUESTION in calls[0]["llm.input_messages.1.message.content"] and calls[0]["r2med.from_journal"]


def test_a_failed_call_is_an_error_that_quotes_nothing(ask, chat_server):
    chat_server.script = [refuse(500, '{"error": {"message": "about a swollen knee"}}')]
    _, spans = ask("hyde(some-model) → bm25")
    [call] = [each for each in spans if kind_of(each) == "LLM"]
    assert (call.status.status_code, call.status.description) == (StatusCode.ERROR, "server")


def test_an_agent_is_a_span_with_its_calls_and_searches_inside(ask, chat_server):
    chat_server.script = [answer("<search>iron</search>"), answer("<answer>bread</answer>")]
    _, spans = ask("search-r1(some-model) → bm25")
    assert tree(spans)["AGENT search-r1(some-model)"] == ["LLM some-model", "RETRIEVER bm25", "LLM some-model"]


class Letters:
    """A model: how often a text has each of eight letters."""

    revision = "1"

    def encode(self, texts, **_):
        return np.array([[text.count(letter) + 0.1 for letter in "aeioustn"] for text in texts], np.float32)


def test_a_run_has_a_span_for_each_query_and_the_same_scores_as_without_a_trace(tmp_path):
    plain, traced = (
        package.run(Letters(), "demo/Biology", out=None, store=Store(tmp_path / name), **settings).records[0]
        for name, settings in (("a", {}), ("b", {"trace": tmp_path / "run.jsonl"}))
    )
    assert traced.per_query == plain.per_query and traced.key == plain.key
    spans = read_spans(tmp_path / "run.jsonl")
    asked = [each.attributes["r2med.query.id"] for each in spans if kind_of(each) == "RETRIEVER"]
    assert asked == [query.id for query in package.load("demo/Biology").queries]
    embedded = [each.attributes for each in spans if kind_of(each) == "EMBEDDING"]
    assert {"query"} <= {each["r2med.role"] for each in embedded}
    assert all(each["embedding.model_name"] for each in embedded)


def test_the_file_is_what_a_collector_reads_and_the_names_are_those_of_openinference(ask, chat_server, tmp_path):
    trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    chat_server.script = [answer("bowel and bread"), answer("[2] > [1]")]
    _, spans = ask(trace_content=True)
    for line, read in zip((tmp_path / "trace.jsonl").read_text().splitlines(), spans, strict=True):
        # The ids of OTLP are hex; Protobuf's own JSON has base64.
        as_base64 = re.sub(
            r'("(?:traceId|spanId|parentSpanId)":)"(\w*)"',
            lambda found: f'{found[1]}"{base64.b64encode(bytes.fromhex(found[2])).decode()}"',
            line,
        )
        sent = json_format.Parse(as_base64, trace_service.ExportTraceServiceRequest())
        [parsed] = sent.resource_spans[0].scope_spans[0].spans
        assert (parsed.name, parsed.start_time_unix_nano) == (read.name, read.start_time)
        assert {each.key for each in parsed.attributes} == set(read.attributes)


def test_every_attribute_is_one_of_openinference_or_ours(ask, chat_server):
    pytest.importorskip("openinference.semconv.trace")
    chat_server.script = [answer("bowel and bread"), answer("[2] > [1]")]
    _, spans = ask(trace_content=True)
    assert not foreign_names(spans)


WRITER = """
import sys
from pathlib import Path
from r2med.foundation.core.activities import Activity, doing
from r2med.foundation.engine.trace_file import TraceFile
from r2med.foundation.engine.tracing import tracing
with tracing(TraceFile(Path(sys.argv[1]))), doing(lambda: Activity("whole")):
    for number in range(10**9):
        with doing(lambda: Activity("part", facts={"number": number, "filler": "x" * 3000})):
            pass
        if number == 50:
            print("begun", flush=True)
"""


def test_a_killed_process_leaves_a_file_that_can_be_read_and_continued(tmp_path):
    path = tmp_path / "new" / "trace.jsonl"
    with started(["-c", WRITER, path]) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rfind(b"\n") + 1])  # the kernel may stop in the middle of the last line
    numbers = [each.attributes["r2med.number"] for each in read_spans(path)]
    assert numbers == list(range(len(numbers))) and len(numbers) > 50
    with path.open("a") as file:
        file.write('{"cut')  # as a kill or a full disk leaves it
    with tracing(TraceFile(path)), doing(lambda: Activity("next")):
        pass
    *_, cut, last = path.read_text().splitlines()
    assert cut == '{"cut' and json.loads(last)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] == "next"


def test_without_a_file_nothing_is_traced_and_an_error_inside_a_span_is_written(tmp_path):
    def unwanted() -> Any:
        raise AssertionError("made although nothing listens")

    with tracing(None), doing(unwanted):
        happened(unwanted)
    with (
        pytest.raises(ValueError, match="about a patient"),
        tracing(TraceFile(tmp_path / "t")),
        doing(lambda: Activity("failing")),
    ):
        raise ValueError("about a patient")
    [failed] = read_spans(tmp_path / "t")
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "ValueError")


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"Setup\(trace='.*'\): the file cannot be written \("):
        _ = Runtime(trace=tmp_path / "file" / "trace.jsonl").trace
    with pytest.raises(UserError, match=r"Setup\(trace_content=True\): it needs Setup\(trace='FILE'\) as well"):
        Setup(trace_content=True)


def test_a_full_disk_leaves_no_broken_line(tmp_path, monkeypatch):
    path = tmp_path / "trace.jsonl"
    file, write = TraceFile(path), os.write
    file.write({"name": "first"})
    left = [30]

    def limited(number: int, content: bytes) -> int:
        taken = content[: left[0]]
        left[0] -= len(taken)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(number, taken)

    monkeypatch.setattr(os, "write", limited)
    with pytest.raises(OSError, match="No space left"):
        file.write({"name": "second"})
    assert [
        json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in path.read_text().splitlines()
    ] == [[{"name": "first"}]]


def test_half_a_surrogate_pair_in_a_span_is_an_escape(tmp_path):
    TraceFile(tmp_path / "trace.jsonl").write({"name": "\ud800"})
    assert "\\ud800" in (tmp_path / "trace.jsonl").read_text(encoding="utf-8")


def test_only_its_owner_can_read_a_trace(tmp_path):
    TraceFile(tmp_path / "new").close()
    (tmp_path / "old").touch(0o644)
    TraceFile(tmp_path / "old", content=True).close()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_file()} == {0o600}
