"""A running server notices that its data were changed or cleared, and answers no longer with the old texts."""

import asyncio
from pathlib import Path

import pytest

from r2med.data import load
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import clear, holdings
from r2med.server.answer_pool import AnswerPool
from r2med.server.http_app import create_app
from r2med.server.limits import Limits
from r2med.server.mcp_tools import SearchTools
from r2med.server.served_corpus import open_served
from support.datasets import r2med_folder
from support.served_app import request


@pytest.mark.parametrize("how", ["changed", "cleared"])
def test_a_server_whose_data_were_changed_or_cleared_says_so(how: str, store: Store, tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "ward")
    served, systems = open_served(load(folder, store), ["bm25"], "", Runtime(store=store), store)
    app = create_app(served, systems=systems)
    tools = SearchTools(served, systems, Limits(), AnswerPool(1))
    calls = [
        {"url": "/retrieve", "json": {"queries": ["iron"]}},
        {"url": "/search", "json": {"question": "iron"}},
        {"url": "/systems", "method": "GET"},
    ]
    assert [request(app, **call).status_code for call in calls] == [200, 200, 200]
    if how == "changed":
        corpus = folder / "corpus.jsonl"
        corpus.write_text(corpus.read_text().replace("Iron", "Copper"))
    else:
        clear(store, next(each for each in holdings(store) if each.kind == "corpus"))
    for call in calls:
        answer = request(app, **call)
        assert answer.status_code == 503
        assert answer.json()["detail"] == "the data of ward were changed or removed: start the server again"
    assert request(app, "GET", "/health").json()["status"] == "data changed"
    assert asyncio.run(tools.call("get_document", {"id": "d1"})).is_error
