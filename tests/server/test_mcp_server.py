"""MCP: the real client finds two tools and searches with them, and only documents of the corpus leave the server."""

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.server.http_app import create_app
from r2med.server.http_server import AppServer, bind
from r2med.server.mcp_server import add_mcp
from r2med.server.mcp_tools import EXCERPT, MAX_K, PIECE
from r2med.server.served_corpus import ServedData, open_served
from r2med.server.serving import serve_systems
from r2med.systems.system.question import NOTHING_FOUND
from support.chat_server import answer, refuse
from support.datasets import LIVE_DOCUMENTS, r2med_folder
from support.processes import PATIENCE, environment
from support.served_app import request

LONG = "filler " * 400 + "The enlarged spleen was felt. " + "padding " * 4000
SECRET = "zzz-the-answer"
GRADED = "zzz-graded"
HYDE = "hyde(some-model) → bm25"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A corpus and its systems, of a dataset with a query, its answer and its judgements."""
    store = Store(tmp_path_factory.mktemp("home"), "live")
    queries = (Query("q-secret", "a swollen knee", answer=SECRET),)
    corpus = Corpus.of([*LIVE_DOCUMENTS, ("long", LONG)])
    dataset = Dataset("small", queries, corpus, Qrels({"q-secret": {"knee": 1, GRADED: 2}}))
    return ServedData(*open_served(dataset, ["bm25(k1=1.2)"], "bm25", Runtime(store=store), store))


@pytest.fixture(scope="module")
def app(opened):
    data = opened
    app = create_app(data)
    add_mcp(app, data)
    return app


def calls(app, *asked: tuple[str, dict[str, Any]], mode: str = "auto", **headers: str) -> list[Any]:
    """Return the tools and the results of calls that the real client makes at POST /mcp."""

    async def ask() -> list[Any]:
        transport = httpx2.ASGITransport(app)
        async with (
            httpx2.AsyncClient(transport=transport, headers=headers) as http,
            Client(streamable_http_client("http://127.0.0.1/mcp", http_client=http), mode=mode) as client,
        ):
            return [await client.list_tools(), *[await client.call_tool(*each) for each in asked]]

    return asyncio.run(ask())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_clients_of_old_and_new_protocols_search_and_read(app, mode):
    question = {"question": "gluten", "k": 1}
    tools, found, read = calls(app, ("search", question), ("get_document", {"id": "gluten"}), mode=mode)
    assert [tool.name for tool in tools.tools] == ["search", "get_document"]
    properties = tools.tools[0].input_schema["properties"]
    assert (properties["k"]["maximum"], properties["system"]["enum"]) == (MAX_K, ["", "bm25(k1=1.2)", "bm25"])
    [document] = found.structured_content["documents"]
    assert (document["id"], document["cut"]) == ("gluten", False)
    assert json.loads(found.content[0].text) == found.structured_content
    assert read.structured_content["text"] == document["text"] == dict(LIVE_DOCUMENTS)["gluten"]


def test_the_ranking_and_the_scores_are_those_of_the_search_page(app):
    body = {"question": "swollen knee, iron and bread", "k": 3, "system": "bm25"}
    _, found = calls(app, ("search", body))
    page = request(app, url="/search", json=body).json()
    shown = [(each["id"], each["score"]) for each in found.structured_content["documents"]]
    assert shown == [(each["id"], each["score"]) for each in page["passages"]] and len(shown) == 3


def test_a_long_document_is_an_excerpt_around_the_match_and_can_be_read_whole(app):
    _, found = calls(app, ("search", {"question": "spleen"}))
    [excerpt] = found.structured_content["documents"]
    assert "enlarged spleen" in excerpt["text"] and len(excerpt["text"]) == EXCERPT and excerpt["cut"]
    first, second = calls(app, ("get_document", {"id": "long"}), ("get_document", {"id": "long", "start": PIECE}))[1:]
    assert first.structured_content["next_start"] == PIECE and second.structured_content["next_start"] is None
    assert first.structured_content["text"] + second.structured_content["text"] == LONG


def test_no_answer_judgement_or_query_of_the_dataset_leaves_the_server(app):
    own = "a swollen knee"  # the text of the dataset's query
    answers = calls(
        app, ("search", {"question": own}), ("get_document", {"id": "knee"}), ("get_document", {"id": GRADED})
    )
    said = "".join(each.model_dump_json() for each in answers[:-1])
    assert "swollen knee" in said and SECRET not in said and GRADED not in said and "q-secret" not in said
    assert answers[-1].is_error  # a judged document that is not in the corpus is unknown, like any other


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search", {}, "question: this field is needed"),
        ("search", {"question": " "}, "question: it is empty"),
        ("search", {"question": "x" * 20_001}, "question: 20,001 characters are more than 20,000"),
        ("search", {"question": "x", "k": MAX_K + 1}, f"k: it must be from 1 to {MAX_K}"),
        ("search", {"question": "x", "k": "many"}, "k: it must be a whole number"),
        ("search", {"question": "x", "qrels": True}, "qrels: there is no such field"),
        ("search", {"question": "x", "system": "bm26"}, "did you mean bm25"),
        ("get_document", {"id": "nope"}, "id: there is no document 'nope': use an id that search returned"),
        ("get_document", {"id": "gluten", "start": 900}, "start: the document has 48 characters"),
        ("get_document", {"id": "gluten", "start": -1}, "start: it must be greater than or equal to 0"),
        ("qrels", {}, "there is no tool 'qrels': use search or get_document"),
    ],
)
def test_a_wrong_call_is_one_line(app, tool, arguments, says):
    [result] = calls(app, (tool, arguments))[1:]
    [content] = result.content
    assert result.is_error and says in content.text and "\n" not in content.text


def test_the_request_of_the_docs_is_answered(app):
    page = Path(__file__).parents[2].joinpath("docs/mcp.md").read_text("utf-8")
    [body] = re.findall(r"-d '(\{\"jsonrpc.*?)' http", page)
    answered = request(app, url="/mcp", json=json.loads(body))
    assert answered.status_code == 200 and "documents" in answered.json()["result"]["structuredContent"]


def test_a_search_that_finds_nothing_says_so(app):
    _, found = calls(app, ("search", {"question": "xyzzy"}))
    assert (found.structured_content["documents"], found.structured_content["problem"]) == ([], NOTHING_FOUND)


def test_a_failed_stage_is_reported_beside_the_documents(chat_server, marked_keys, tmp_path):
    store = Store(tmp_path, "live")
    runtime = Runtime(store=store, base_url=chat_server.address, attempts=1)
    dataset = Dataset("small", (), Corpus.of(LIVE_DOCUMENTS), Qrels({}))
    data = ServedData(*open_served(dataset, [HYDE], "", runtime, store))
    app = create_app(data)
    add_mcp(app, data)
    chat_server.script = [refuse(500), answer("bowel")]
    _, failed, right = calls(app, ("search", {"question": "iron"}), ("search", {"question": "iron?"}))
    assert "500" in failed.structured_content["problem"] and failed.structured_content["documents"][0]["id"] == "iron"
    assert (right.structured_content["problem"], right.structured_content["documents"][0]["id"]) == ("", "gluten")


def test_strangers_and_large_requests_are_refused_before_a_tool_is_called(app):
    body = json.dumps(INITIALIZE)
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    assert request(app, url="/mcp", content=body, headers=headers | {"Content-Type": "text/plain"}).status_code == 415
    assert request(app, url="/mcp", content=body, headers=headers).status_code == 200
    for stranger in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert request(app, url="/mcp", content=body, headers=headers | stranger).status_code == 403
    assert request(app, url="/mcp", content=" " * (1 << 20) + body, headers=headers).status_code == 413
    assert request(app, "GET", "/mcp", headers=headers).status_code == 405


def test_with_a_token_only_clients_that_send_it_are_answered(opened):
    data = opened
    guarded = create_app(data, token="secret")
    add_mcp(guarded, data)
    assert len(calls(guarded, Authorization="Bearer secret")[0].tools) == 2
    assert request(guarded, url="/mcp", json=INITIALIZE).status_code == 401
    with pytest.raises(BaseExceptionGroup):
        calls(guarded, Authorization="Bearer wrong")


def test_the_real_server_answers_the_real_client(app):
    ready, listener = threading.Event(), bind("127.0.0.1", 0, None)
    server = AppServer(app, ready.set)
    thread = threading.Thread(target=server.serve_at, args=(listener,))
    thread.start()

    async def ask() -> Any:
        async with Client(f"{listener.url}/mcp") as client:
            return await client.call_tool("search", {"question": "gluten"})

    try:
        assert ready.wait(PATIENCE)
        found = asyncio.run(ask())
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
    assert found.structured_content["documents"][0]["id"] == "gluten"


NOISY = """
print("imported")
import sys
import numpy as np

sys.modules["torch"] = None  # as if it were not installed: to import it takes longer than all that is tested

class Noisy:
    def encode_corpus(self, texts, **_):
        print("corpus")
        return np.eye(len(texts), 8, dtype=np.float32)

    def encode_queries(self, texts, **_):
        print("queries")
        return np.eye(len(texts), 8, dtype=np.float32)
"""


def stdio_words(folder: Path, system: str) -> list[str]:
    """Write a dataset; return the arguments of Python that serve it on stdin and stdout."""
    r2med_folder(folder / "data")
    return ["-m", "r2med", "serve", str(folder / "data"), "--system", system, "--mcp", "stdio"]


def stdio_environment(folder: Path) -> dict[str, str]:
    inherited = environment()
    paths = ":".join(filter(None, [str(folder), inherited.get("PYTHONPATH", "")]))
    return inherited | {"PYTHONPATH": paths, "R2MED_HOME": str(folder / "home")}


def test_on_stdin_and_stdout_the_client_searches_and_prints_of_a_model_do_not_disturb(tmp_path, caplog):
    (tmp_path / "noisy_model.py").write_text(NOISY)
    words = stdio_words(tmp_path, "py:noisy_model:Noisy")
    server = StdioServerParameters(command=sys.executable, args=words, env=stdio_environment(tmp_path), cwd=tmp_path)

    async def ask() -> Any:
        with (tmp_path / "log").open("w") as log:
            async with Client(stdio_client(server, errlog=log)) as client:
                return await client.call_tool("search", {"question": "Tired after bread?", "k": 2})

    with caplog.at_level(logging.WARNING):
        found = asyncio.run(asyncio.wait_for(ask(), PATIENCE))
    assert [each["id"] for each in found.structured_content["documents"]] == ["0", "d2"]
    printed = (tmp_path / "log").read_text()
    assert "corpus\n" in printed and "queries\n" in printed and "MCP on stdin and stdout" in printed
    assert not caplog.records  # the client would log each line of stdout that is not a message


@pytest.mark.slow
def test_stdio_has_only_messages_on_stdout_and_ends_at_a_signal(tmp_path):
    command = [sys.executable, *stdio_words(tmp_path, "bm25")]
    pipe, settings = subprocess.PIPE, stdio_environment(tmp_path)
    with subprocess.Popen(command, cwd=tmp_path, env=settings, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as run:
        try:
            assert run.stdin is not None and run.stdout is not None
            run.stdin.write(json.dumps(INITIALIZE) + "\n")
            run.stdin.flush()
            assert json.loads(run.stdout.readline())["result"]["serverInfo"]["name"] == "r2med"
            run.send_signal(signal.SIGTERM)
            run.wait(PATIENCE)
            assert (run.returncode, run.stdout.read()) == (0, "")
        finally:
            run.kill()


def test_another_transport_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"no MCP transport 'sse'.*: stdio, http"):
        serve_systems("demo/Biology", mcp="sse")


def test_a_batch_is_refused_in_the_protocols_own_words(app):
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answered = request(app, url="/mcp", content=json.dumps([INITIALIZE, INITIALIZE]), headers=headers)
    assert answered.status_code == 400
    assert answered.json()["error"]["code"] == -32600 and "one message at a time" in answered.json()["error"]["message"]
