"""--offline: a server on this machine is asked, and one of another machine is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med.evaluation.records.record import Record
from support import chat_server as chat
from support.facts import some_states, states
from support.fork_server import Command


def test_a_server_on_this_machine_is_asked_and_the_record_says_that_no_text_left(
    r2med: Command, chat_server: chat.Server, tmp_path: Path
) -> None:
    system = ["run", "hyde(mine) → bm25", "--base-url", chat_server.address, "--data", "demo/Biology"]
    assert "no text left" not in r2med(*system).stdout
    ended = r2med(*system, "--offline")
    assert ended.returncode == 0, ended.stderr
    some_states(ended.stdout.splitlines(), "offline", "no text left")
    [path] = (tmp_path / "results").rglob("*-*.json")
    assert Record.read(path).offline
    some_states(r2med(*system, "--offline").stdout.splitlines(), "1 of them", "reused")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["run", "hyde(gpt4) → bm25", "--data", "demo/Biology"], ["offline", "gpt4"]),
        (["run", "voyage", "--data", "demo/Biology"], ["voyage", "this machine", "nothing was sent"]),
        (["run", "bm25", "--data", "Biology"], ["R2MED/Biology", "hub"]),
        (["generate", "hyde", "--llm", "x", "--base-url", "http://192.0.2.1/v1"], ["offline", "x", "192.0.2.1"]),
    ],
)
def test_an_address_of_another_machine_gives_a_one_line_error(
    r2med: Command, words: list[str], facts: list[str]
) -> None:
    ended = r2med(*words, "--offline", OPENAI_API_KEY="k", VOYAGE_API_KEY="k")
    assert ended.returncode == 2
    states(ended.messages[-1], *facts)
