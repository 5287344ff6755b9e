"""A running server opens changed data at the next question, and never answers with texts that were removed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from r2med.data import load
from r2med.data.tables.importing import plan_import
from r2med.data.tables.table_import import write_import
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import clear, holdings
from r2med.server.answer_pool import AnswerPool
from r2med.server.http_app import create_app
from r2med.server.mcp_tools import SearchTools
from r2med.server.served_corpus import ServedCorpus, ServedData, open_served
from r2med.systems.agents.agent_state import Hit
from r2med.systems.system.system import LiveSystem
from support.datasets import r2med_folder
from support.facts import states
from support.served_app import request, requests

CALLS: list[dict[str, Any]] = [
    {"url": "/retrieve", "json": {"queries": ["iron"]}},
    {"url": "/search", "json": {"question": "iron"}},
    {"url": "/systems", "method": "GET"},
]


def served(folder: Path, store: Store) -> ServedData:
    runtime = Runtime(store=store)

    def opened() -> tuple[ServedCorpus, Sequence[LiveSystem]]:
        return open_served(load(folder, store), ["bm25"], "", runtime, store)

    return ServedData(*opened(), opened)


def change(folder: Path) -> None:
    corpus = folder / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("Iron", "Copper"))


@pytest.mark.parametrize("call", CALLS)
def test_changed_data_are_opened_at_the_next_question(call: dict[str, Any], store: Store, tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "ward")
    data = served(folder, store)
    app = create_app(data)
    assert request(app, **call).status_code == 200
    change(folder)
    assert request(app, "GET", "/health").json()["status"] == "data changed"
    assert [answer.status_code for answer in requests(app, *[{"method": "POST", **call}] * 3)] == [200] * 3
    corpus = data.corpus.corpus
    assert any("Copper" in corpus.text(row) for row in range(len(corpus)))
    assert request(app, "GET", "/health").json()["status"] == "ok"


def test_an_import_that_updates_is_opened_too(store: Store, tmp_path: Path) -> None:
    """It replaces the folder and clears the old texts from the cache."""
    notes, folder = tmp_path / "notes.csv", tmp_path / "ward"
    for text in ("Iron deficiency and a cough.", "Copper in the liver and a cough."):
        notes.write_text(f"id,text\nn1,{text}\nn2,A fever since the week before.\n")
        write_import(plan_import([notes]), folder, store, update=True)
        if "Iron" in text:
            data = served(folder, store)
    app, tools = create_app(data), SearchTools(data, AnswerPool(1))
    assert not asyncio.run(tools.call("get_document", {"id": "n1"})).is_error
    [passage, *_] = request(app, url="/search", json={"question": "copper"}).json()["passages"]
    assert passage["text"].startswith("Copper")


def test_changed_data_that_cannot_be_read_are_one_line_until_they_can(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = r2med_folder(tmp_path / "ward")
    whole = (folder / "corpus.jsonl").read_text()
    app = create_app(served(folder, store))
    (folder / "corpus.jsonl").write_text("{broken\n")
    answer = request(app, **CALLS[1])
    assert answer.status_code == 503
    assert answer.json()["detail"] == "the data of ward were changed and cannot be opened; the server's log says why"
    states(caplog.messages[-1], "the changed data of ward cannot be opened", "corpus.jsonl:1")
    (folder / "corpus.jsonl").write_text(whole)
    assert request(app, **CALLS[1]).status_code == 200


def test_data_that_were_cleared_are_read_again_only_after_an_update(store: Store, tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "ward")
    data = served(folder, store)
    app = create_app(data)
    clear(store, next(each for each in holdings(store) if each.kind == "corpus"))
    for call in CALLS:
        answer = request(app, **call)
        assert answer.status_code == 503
        assert answer.json()["detail"] == "the data of ward were changed or removed: start the server again"
    assert asyncio.run(SearchTools(data, AnswerPool(1)).call("get_document", {"id": "d1"})).is_error
    change(folder)
    assert [request(app, **call).status_code for call in CALLS] == [200] * len(CALLS)


def test_data_that_change_while_they_are_opened_are_opened_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, warm_up = r2med_folder(tmp_path / "ward"), ServedCorpus.search

    def search(corpus: ServedCorpus, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        if list(queries) == ["warm up"]:
            change(folder)
        return warm_up(corpus, queries, k)

    monkeypatch.setattr(ServedCorpus, "search", search)
    data = served(folder, store)
    assert data.corpus.data.is_updated
