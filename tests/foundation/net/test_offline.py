"""Offline, nothing is sent to another machine. An audit of every socket checks this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from r2med import Setup, System, UserError, evaluate, load
from r2med.foundation.net.offline import is_loopback, is_offline
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store

# Hooks are called in their order and stop at the first that raises: this one sees what was not refused.
AUDITED = """
import json, socket, sys
import r2med
seen = []
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        seen.append(str(arguments[0] if event == "socket.getaddrinfo" else arguments[1]))
sys.addaudithook(hook)
"""

EVERYBODY = """
import urllib.request
from r2med import Setup, System, load
from r2med.systems.agents.remote_search import ServerAddress
def tried(work):
    try:
        work()
        return "done"
    except Exception as error:
        return type(error).__name__
def udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"text", ("192.0.2.1", 9))
def hub():
    from huggingface_hub import hf_hub_download
    hf_hub_download("org/model", "config.json")
def weights():
    System.parse("hf:org/model").run(load("demo/Biology"), Runtime().store, 10)
ends = [tried(work) for work in (
    lambda: socket.create_connection(("192.0.2.1", 9), timeout=1),
    lambda: socket.getaddrinfo("r2med.example", 443),
    udp,
    lambda: urllib.request.urlopen("http://192.0.2.1/", timeout=1),
    hub,
    weights,
    lambda: load("Biology"),
    lambda: System.parse("hyde(gpt4) → bm25").check([load("demo/Biology")]),
    lambda: System.parse("voyage").run(load("demo/Biology"), Runtime().store, 10),
    lambda: ServerAddress("http://192.0.2.1/retrieve").endpoint,
)]
print(json.dumps({"seen": seen, "done": ends.count("done"), "ends": ends}))
"""


def audited(code: str, home: Path) -> dict[str, object]:
    settings = {"R2MED_OFFLINE": "1", "R2MED_HOME": str(home), "OPENAI_API_KEY": "k", "VOYAGE_API_KEY": "k"}
    settings |= {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "HF_HOME": str(home / "hub")}
    ended = subprocess.run(
        [sys.executable, "-c", AUDITED + code],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **settings},
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_no_client_reaches_another_machine(tmp_path: Path) -> None:
    told = audited(EVERYBODY, tmp_path)
    assert told["done"] == 0, told
    # A proxy on this machine was asked by what is no client of ours; what is ours does not even do that.
    assert [address for address in told["seen"] if "127.0.0.1" not in address] == []


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        (b"localhost", True),
        (None, True),
        ("0.0.0.0", True),
        ("10.0.0.1", False),
        ("r2med.example", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("::ffff:192.0.2.1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_loopback_is_this_machine_and_nothing_else(host: str | bytes | None, is_so: bool) -> None:
    assert is_loopback(host) == is_so


@pytest.mark.parametrize(("value", "is_so"), [("1", True), ("yes", True), ("0", False), ("", False), ("false", False)])
def test_the_variable_can_be_off(monkeypatch: pytest.MonkeyPatch, value: str, is_so: bool) -> None:
    monkeypatch.setenv("R2MED_OFFLINE", value)
    assert is_offline() == is_so


def test_a_variable_that_is_0_leaves_the_hub_on() -> None:
    code = "import os, r2med; print(os.environ.get('HF_HUB_OFFLINE', 'on'))"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS"))}
    environment["R2MED_OFFLINE"] = "0"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ended.stdout == "on\n", ended.stderr


def test_an_offline_setup_restores_the_state_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("R2MED_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    before = dict(os.environ)
    setup = Runtime(offline=True, store=Store(tmp_path / "store"))
    assert evaluate(System.parse("bm25", setup), "demo/Biology").offline
    with pytest.raises(UserError, match="offline: gpt4 is not this machine"):
        System.parse("hyde(gpt4) → bm25", setup).check([load("demo/Biology")])
    assert not is_offline() and dict(os.environ) == before
    assert not evaluate(System.parse("bm25", Setup(store=setup.store)), "demo/Biology").offline
