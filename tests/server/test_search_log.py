"""`serve --log-searches`: what sessions search and open is kept for their owner, scored, and cleared."""

import json
import stat

import pytest

import r2med
from r2med.data import load
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.public.clearing import Clearing
from r2med.server.http_app import create_app
from r2med.server.mcp_server import add_mcp
from r2med.server.serving import _opened
from support.searching_agents import village
from support.served_app import request


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("R2MED_HOME", str(tmp_path / "home"))
    village(tmp_path / "set", ["finder", "looper"])
    return tmp_path


def served_app(place, log_searches):
    runtime = Runtime(store=Store(place / "home"))
    served, systems, _ = _opened(str(place / "set"), ["bm25"], "", runtime, log_searches)
    app = create_app(served, systems=systems)
    add_mcp(app, served, systems)
    return app


def mcp_call(app, name, arguments, **params):
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments, **params},
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers["MCP-Protocol-Version"] = "2025-06-18"
    answer = request(app, url="/mcp", content=json.dumps(message), headers=headers)
    assert answer.status_code == 200 and not answer.json()["result"].get("isError"), answer.text


def use(app):
    """Search and open documents as two sessions: one of HTTP, one of MCP."""
    body = {"queries": ["finder alpha"], "topk": 2, "session": "mine/finder"}
    assert request(app, json=body).status_code == 200
    asked = {"question": "finder noise", "k": 2, "session": "mine/finder"}
    assert request(app, url="/search", json=asked).status_code == 200
    mcp_call(app, "search", {"question": "looper beta", "k": 1}, _meta={"session": "mine/looper"})
    mcp_call(app, "get_document", {"id": "looper-beta"}, _meta={"session": "mine/looper"})


def test_nothing_is_kept_unless_it_is_asked_for(place):
    use(served_app(place, log_searches=False))
    assert not (place / "home" / "sessions").exists()


def test_without_a_name_nothing_is_kept_and_a_wrong_name_is_refused(place):
    app = served_app(place, log_searches=True)
    for asked in ({"queries": ["finder alpha"]}, {"queries": ["finder alpha"], "session": None}):
        assert request(app, json=asked).status_code == 200
    for name in ("x" * 201, ["x"]):
        assert request(app, json={"queries": ["finder alpha"], "session": name}).status_code == 422
        assert request(app, url="/search", json={"question": "finder", "session": name}).status_code == 422
        with pytest.raises(AssertionError, match=r"_meta\.session"):
            mcp_call(app, "search", {"question": "looper beta"}, _meta={"session": name})
    assert not (place / "home" / "sessions").exists()


def test_sessions_are_kept_for_their_owner_and_give_the_record_of_their_agent(place):
    use(served_app(place, log_searches=True))
    (file,) = (place / "home" / "sessions").glob("*.sqlite")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Runtime(store=Store(place / "home")) as opened:
        (record,) = r2med.answer(
            "sessions(mine)", data=place / "set", conditions="searched", out=place / "out", setup=opened
        )
    assert record.reader == "mine"
    finder, looper = (record.per_query["searched"][name] for name in ("finder", "looper"))
    assert finder["returned-recall"] == pytest.approx(1 / 3) and looper["opened-recall"] == pytest.approx(1 / 3)
    assert finder["accuracy"] == 0, "a log has no answer"
    assert "kept-recall" not in finder


def test_the_log_goes_with_its_dataset(place):
    use(served_app(place, log_searches=True))
    store = Store(place / "home")
    said = list(Clearing(dataset=str(place / "set")).carry_out(store, really=True))
    assert any("4 logged searches" in line.sentence for line in said)
    (file,) = (place / "home" / "sessions").glob("*.sqlite")
    assert b"looper" not in b"".join(path.read_bytes() for path in file.parent.iterdir())
    with Runtime(store=store) as opened, pytest.raises(UserError, match="log-searches"):
        load(str(place / "set"), store)
        r2med.answer("sessions(mine)", data=place / "set", conditions="searched", out=place / "b", setup=opened)
