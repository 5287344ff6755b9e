"""The way of a question from a chat model to the network is short: a reader can follow it."""

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest

import r2med
from support.chat_models import ask, opened
from support.chat_server import Server

MOST_FRAMES = 12
"""Functions from `complete` to the client, two of them of the memo."""

PACKAGE = str(Path(r2med.__file__).parent)


def our_frames() -> list[str]:
    """Return the functions of r2med on the stack, innermost first."""
    frame, names = sys._getframe(1), []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back  # type: ignore[assignment]
    return names


@pytest.mark.usefixtures("marked_keys")
def test_few_functions_stand_between_a_question_and_the_network(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: dict[Any, list[str]] = {}
    paths: list[list[str]] = []
    create, stream = asyncio.BaseEventLoop.create_task, httpx2.AsyncClient.stream

    def create_task(loop: asyncio.BaseEventLoop, work: Coroutine[Any, Any, Any], **settings: Any) -> Any:
        is_inside = asyncio._get_running_loop() is loop
        earlier = started.get(asyncio.current_task(loop), []) if is_inside else []
        task = create(loop, work, **settings)
        started[task] = our_frames() + earlier
        return task

    def send(client: httpx2.AsyncClient, *words: Any, **settings: Any) -> Any:
        paths.append(our_frames() + started[asyncio.current_task()])
        return stream(client, *words, **settings)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_task", create_task)
    monkeypatch.setattr(httpx2.AsyncClient, "stream", send)
    opened(server, home).complete(ask("gout"))
    [path] = paths
    assert path[0] == "Client.send" and path[-1] == "JournaledChat.complete", path
    assert len(path) <= MOST_FRAMES, path
