"""HTTP requests: answers that never end, unpack to gigabytes or redirect; and no secret in an error."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import endpoint_at
from r2med.foundation.net.http import Client, HTTPAnswer, RequestFailed, run_sync
from support import chat_server as api
from support.chat_server import Exchange, Server
from support.keys import KEY
from support.loopback import nobody_listening

QUESTION = {"messages": [{"role": "user", "content": "gout"}], "stream": True}
PATH = "/chat/completions"


def asked(
    address: str,
    read: Callable[[HTTPAnswer], Awaitable[Any]] = HTTPAnswer.read,
    *,
    times: int = 1,
    max_bytes: int = 1 << 20,
    idle: float = 30.0,
) -> Any:
    async def run() -> Any:
        async with Client(endpoint_at(address, "m", "M_KEY"), idle, key=KEY) as client:
            for _ in range(times):
                last = await client.send(PATH, QUESTION, read, max_bytes)
            return last

    return run_sync(run())


def failed(address: str, **settings: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as error:
        asked(address, **settings)
    link: BaseException | None = error.value
    while link is not None:
        assert KEY not in f"{link} {link!r} {vars(link)}" and isinstance(link, RequestFailed)
        link = link.__context__
    assert "\n" not in str(error.value)
    return error.value


async def events(answer: HTTPAnswer) -> list[bytes]:
    return [data async for data in answer.events()]


def test_an_answer_is_read_completely(chat_server: Server) -> None:
    chat_server.otherwise = api.raw(b'{"a": 1}')
    assert asked(chat_server.address) == b'{"a": 1}'
    assert chat_server.requests[0].key == f"Bearer {KEY}" and chat_server.requests[0].body == QUESTION


def test_a_connection_is_used_again(chat_server: Server) -> None:
    asked(chat_server.address, events, times=5)
    assert (chat_server.connections, len(chat_server.requests)) == (1, 5)


def test_events_are_put_together_from_pieces_cut_anywhere(chat_server: Server) -> None:
    chat_server.otherwise = api.streamed(
        b": hello\n\nda", b"ta: a\xe2\x80", b"\xa8b\r\n\r", b"\n\ndata: 1\ndata:2\n\ndata: x"
    )
    assert asked(chat_server.address, events) == ["a\u2028b".encode(), b"1\n2", b"x: end"]


def test_a_stream_that_never_ends_is_not_read_for_ever(chat_server: Server) -> None:
    async def endless(exchange: Exchange) -> None:
        await exchange.begin_stream()
        while not exchange.writer.is_closing():
            await exchange.event(b"data: " + b"x" * 50_000)

    chat_server.otherwise = endless
    failure = failed(chat_server.address, read=events)
    assert (failure.kind, failure.again) == ("invalid", False)
    assert str(failure).endswith("is larger than 1 MB; the rest was not read")


@cache
def packed_zeros() -> bytes:
    return gzip.compress(bytes(200 << 20))


@pytest.mark.parametrize("packing", ["gzip", "gzip, gzip", "zstd", "br"])
def test_an_answer_that_unpacks_to_gigabytes_is_refused(chat_server: Server, packing: str) -> None:
    chat_server.otherwise = lambda exchange: exchange.send(200, packed_zeros(), {"Content-Encoding": packing})
    assert failed(chat_server.address).kind == "invalid"


def test_a_packed_answer_of_fair_size_is_unpacked(chat_server: Server) -> None:
    chat_server.otherwise = lambda exchange: exchange.send(200, gzip.compress(b"{}"), {"Content-Encoding": "gzip"})
    assert asked(chat_server.address) == b"{}"


@pytest.mark.parametrize("location", ["http://elsewhere.example/v1?token=abc", "/v1/loop", "//u:p@other.example/x"])
def test_no_redirect_is_followed(chat_server: Server, location: str) -> None:
    chat_server.otherwise = api.refuse(307, "", Location=location)
    failure = failed(chat_server.address)
    assert len(chat_server.requests) == 1 and failure.for_all and not failure.again
    assert "answered HTTP 307 and redirects to http://" in str(failure) and "is not followed" in str(failure)
    assert "token" not in str(failure) and "u:p" not in str(failure)


def test_an_error_of_any_size_becomes_one_line(chat_server: Server) -> None:
    chat_server.otherwise = api.refuse(503, "no " * 5_000_000, retry_after="3")
    failure = failed(chat_server.address)
    assert (failure.kind, failure.again, failure.retry_after) == ("server", True, 3.0) and len(str(failure)) < 300


def test_silence_and_broken_connections_give_different_failures(chat_server: Server) -> None:
    chat_server.script = [api.hang, api.stall_half_way, api.drop, api.close_half_way]
    kinds = [failed(chat_server.address, read=events, idle=1.0).kind for _ in range(4)]
    assert kinds == ["timeout", "timeout", "connection", "connection"]


def test_a_server_that_is_down_is_unreachable() -> None:
    with nobody_listening() as address:
        failure = failed(address)
    assert failure.unreachable and failure.again and "failed (ConnectError)" in str(failure)


def test_no_proxy_is_used_for_this_machine(chat_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://nowhere.example:1")
    monkeypatch.setenv("HTTP_PROXY", "http://nowhere.example:1")
    asked(chat_server.address, events)
    with pytest.raises(UserError, match="m: a proxy in the environment cannot be used"):
        asked("http://m.example/v1")


def test_work_runs_inside_a_running_loop_too() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 7

    async def notebook() -> int:
        return run_sync(answer())

    assert asyncio.run(notebook()) == run_sync(answer()) == 7
