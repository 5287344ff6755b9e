"""A chat API on loopback that answers, streaming and not, and misbehaves on request.

As a program it serves until its input ends: python -m support.chat_server --latency 0.05
"""

import argparse
import asyncio
import json
import socket
import struct
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from support import loopback
from support.loopback import tokens


def reply_to(question: str) -> str:
    """Return what this server answers to a question."""
    return f"A passage about {question}."


class Request(loopback.Request):
    """One request as it came."""

    @property
    def raw(self) -> bool:
        """Whether it is a prompt to be continued."""
        return self.path.endswith("/v1/completions")

    @property
    def question(self) -> str:
        messages = self.body.get("messages") or [{"content": ""}]
        return str(self.body["prompt"] if self.raw else messages[-1]["content"])

    @property
    def prompt_tokens(self) -> int:
        if self.raw:
            return tokens(self.question)
        return sum(tokens(message["content"] or "") for message in self.body.get("messages", ()))


@dataclass
class Server:
    """What it was asked, what it answered, and what it is to do next."""

    address: str = ""
    script: list["Step"] = field(default_factory=list)
    """Steps for the next requests, one each; after them it answers."""
    plan: dict[str, list["Step"]] = field(default_factory=dict)
    """Steps for a question, one for each time it is asked; they go before the script."""
    otherwise: "Step | None" = None
    """What it does when it has no other step, instead of answering."""
    requests: list[Request] = field(default_factory=list)
    served: Counter[str] = field(default_factory=Counter)
    """How often a question was answered whole."""
    connections: int = 0
    at_once: int = 0
    most_at_once: int = 0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def next_step(self, request: Request) -> "Step":
        if steps := self.plan.get(request.question):
            return steps.pop(0)
        return self.script.pop(0) if self.script else self.otherwise or answer()


@dataclass(frozen=True)
class Exchange:
    """A request and the means to answer it."""

    server: Server
    request: Request
    writer: asyncio.StreamWriter

    async def send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, cut: int | None = None
    ) -> None:
        fields = {"Content-Type": "application/json", "Content-Length": str(len(body))} | (headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.writer.write(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + body[:cut])
        await self.writer.drain()

    async def begin_stream(self) -> None:
        self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        await self.writer.drain()

    async def event(self, data: Any, last: bool = False) -> None:
        text = data if isinstance(data, bytes) else b"data: " + json.dumps(data).encode() + b"\n\n"
        self.writer.write(b"%x\r\n%s\r\n" % (len(text), text) + (b"0\r\n\r\n" if last else b""))
        await self.writer.drain()

    def piece(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return a piece of the answer in the form of the API that was asked."""
        return text_chunk(delta.get("content", ""), finish) if self.request.raw else chunk(delta, finish)

    def reset(self) -> None:
        """Close the connection with a reset, as a server does that dies."""
        with suppress(OSError, AttributeError):
            raw = self.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Step = Callable[[Exchange], Awaitable[None]]
DONE = b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def text_chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": finish}]}


def answer(
    text: str | None = None,
    *,
    reasoning: str = "",
    reasoning_field: str = "reasoning_content",
    refusal: str = "",
    finish: str = "stop",
    usage: bool = True,
    stream: bool = True,
    delay: float = 0.0,
    pieces: int = 3,
    logprobs: Sequence[tuple[str, dict[str, float]]] = (),
    calls: Sequence[tuple[str, str]] = (),
) -> Step:
    """Answer right, or with what a model may also say; `logprobs` are its tokens, each with its alternatives.

    `calls` are (name, arguments) of the tools that it calls; a stream has the arguments in pieces.
    """

    async def step(exchange: Exchange) -> None:
        if delay:
            await asyncio.sleep(delay)
        request = exchange.request
        content = reply_to(request.question) if text is None else text
        said = tokens(content) + (tokens(reasoning) if reasoning else 0)
        bill = {"prompt_tokens": request.prompt_tokens, "completion_tokens": said}
        bill["total_tokens"] = sum(bill.values())
        message = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = [tool_call(number, *each) for number, each in enumerate(calls)]
        message |= ({reasoning_field: reasoning} if reasoning else {}) | ({"refusal": refusal} if refusal else {})
        if not (stream and request.body.get("stream")):
            said_whole = {"text": content} if request.raw else {"message": message}
            whole = {"choices": [{"index": 0, **said_whole, "finish_reason": finish, **reported(request, logprobs)}]}
            exchange.server.served[request.question] += 1  # before its last byte: who has it may look here at once
            await exchange.send(200, json.dumps(whole | ({"usage": bill} if usage else {})).encode())
        else:
            await exchange.begin_stream()
            size = -(-len(content) // pieces) or 1
            for start in range(0, len(content), size):
                await exchange.event(exchange.piece({"content": content[start : start + size]}))
            rest = {name: value for name, value in message.items() if name not in ("role", "content", "tool_calls")}
            await exchange.event(exchange.piece(rest))
            for event in call_pieces(calls):
                await exchange.event(exchange.piece({"tool_calls": [event]}))
            for token in logprobs:  # one event each, as servers stream them
                event = exchange.piece({"content": ""})
                event["choices"][0] |= reported(request, [token])
                await exchange.event(event)
            await exchange.event(exchange.piece({}, finish))
            if usage and request.body.get("stream_options"):
                await exchange.event({"choices": [], "usage": bill})
            exchange.server.served[request.question] += 1
            await exchange.event(DONE, last=True)

    return step


async def by_seed(exchange: Exchange) -> None:
    """Answer with words that depend on the seed, as an LLM does."""
    seed = exchange.request.body.get("seed", 0)
    await answer(f"seed {seed} w{seed % 11} w{seed % 13} w{seed % 17}")(exchange)


def seeds(server: Server) -> list[int]:
    """Return the seed of every request."""
    return [request.body["seed"] for request in server.requests]


def tool_call(number: int, name: str, arguments: str) -> dict[str, Any]:
    """Return a call in the form of OpenAI's protocol."""
    return {
        "index": number,
        "id": f"call_{uuid.uuid4().hex}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def call_pieces(calls: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield calls as a server streams them: first the name of each, then the arguments in pieces of three letters."""
    for number, (name, _) in enumerate(calls):
        yield tool_call(number, name, "")
    for number, (_, arguments) in enumerate(calls):
        for start in range(0, len(arguments), 3):
            yield {"index": number, "function": {"arguments": arguments[start : start + 3]}}


def reported(request: Request, logprobs: Sequence[tuple[str, dict[str, float]]]) -> dict[str, Any]:
    """Return tokens with log-probabilities as the two endpoints of OpenAI's protocol report them, if asked."""
    if not (logprobs and request.body.get("logprobs")):
        return {}
    if request.raw:
        lists = {
            "tokens": [token for token, _ in logprobs],
            "token_logprobs": [tops[token] for token, tops in logprobs],
            "top_logprobs": [tops for _, tops in logprobs],
        }
        return {"logprobs": lists}
    content = [
        {
            "token": token,
            "logprob": tops[token],
            "top_logprobs": [{"token": name, "logprob": value} for name, value in tops.items()],
        }
        for token, tops in logprobs
    ]
    return {"logprobs": {"content": content}}


def refuse(status: int, body: str = '{"error": {"message": "no"}}', **headers: str) -> Step:
    """Answer with an error; `retry_after="1"` becomes the header Retry-After."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, body.encode(), fields)


def echo_key(status: int) -> Step:
    """Answer with an error that has the client's key in its body, as careless gateways do."""

    async def step(exchange: Exchange) -> None:
        said = f"bad request with Authorization: {exchange.request.key}"
        await exchange.send(status, json.dumps({"error": {"message": said}, "detail": said}).encode())

    return step


def raw(body: bytes, kind: str = "application/json") -> Step:
    return lambda exchange: exchange.send(200, body, {"Content-Type": kind})


def streamed(*events: Any, close: bool = True) -> Step:
    """Stream these events as they are, and nothing after them."""

    async def step(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for event in events:
            await exchange.event(event)
        if close:
            await exchange.event(b": end\n\n", last=True)
        else:
            await exchange.server.stopping.wait()

    return step


async def hang(exchange: Exchange) -> None:
    """Say nothing until the server stops."""
    await exchange.server.stopping.wait()


async def drop(exchange: Exchange) -> None:
    exchange.reset()


async def close_half_way(exchange: Exchange) -> None:
    """Break the connection in the middle of a stream."""
    await exchange.begin_stream()
    await exchange.event(exchange.piece({"content": "Half a pass"}))
    exchange.writer.close()


async def stall_half_way(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.event(exchange.piece({"content": "Half a pass"}))
    await exchange.server.stopping.wait()


end_half_way = streamed(chunk({"content": "Half a pass"}))
"""A stream that ends as if all were well, but without a finish reason."""

invalid_json = streamed(b'data: {"choices": [{"del\n\n')


async def trickle(exchange: Exchange) -> None:
    """Never be silent for long, and never come to an end."""
    await exchange.begin_stream()
    while not exchange.server.stopping.is_set():
        await exchange.event(chunk({"content": "and "}))
        await asyncio.sleep(0.03)


@contextmanager
def serve(otherwise: Step | None = None) -> Iterator[Server]:
    """Serve on a free port of loopback, from a thread of its own."""
    state = Server(otherwise=otherwise)
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(_serve(state, ready)), name="chat-server")
    thread.start()
    ready.wait()
    try:
        yield state
    finally:
        loop.call_soon_threadsafe(state.stopping.set)
        thread.join()
        loop.close()


async def _serve(state: Server, ready: threading.Event) -> None:
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        state.connections += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while not writer.is_closing():
                    await _exchange(state, reader, writer)
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=512)
    state.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    ready.set()
    await state.stopping.wait()
    server.close()
    for task in list(connections):
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


async def _exchange(state: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
    request = Request(time.monotonic(), first.split()[1], headers.get("authorization", ""), body)
    state.requests.append(request)
    state.at_once += 1
    state.most_at_once = max(state.most_at_once, state.at_once)
    try:
        await state.next_step(request)(Exchange(state, request, writer))
    finally:
        state.at_once -= 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--pieces", type=int, default=3)
    options = parser.parse_args()
    with serve(answer(delay=options.latency, pieces=options.pieces)) as server:
        print(server.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
