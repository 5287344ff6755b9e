"""Serve the tools of `mcp_tools` by the Model Context Protocol (MCP): at POST /mcp, or on stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from fastapi import FastAPI
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from r2med.foundation.core.version import __version__
from r2med.server import limits
from r2med.server.answer_pool import AnswerPool
from r2med.server.http_app import read_body, unless_gone
from r2med.server.http_server import end_now
from r2med.server.mcp_tools import SearchTools
from r2med.server.served_corpus import ServedData


def add_mcp(app: FastAPI, data: ServedData) -> None:
    """Add POST /mcp to an application of `create_app`. Its guard, limits and threads hold for /mcp too."""
    server = mcp_server(SearchTools(data, app.state.answers))
    app.router.routes.append(Route("/mcp", MCPEndpoint(server), methods=["POST"]))


def serve_stdio(
    data: ServedData,
    leave: Callable[[], None] = lambda: None,
) -> None:
    """Answer on stdin and stdout until stdin ends, or until SIGINT or SIGTERM. `leave` is called before a quick exit.

    While it serves, everything that is printed goes to stderr.
    """
    pool = AnswerPool(limits.MAX_ANSWERS)
    server = mcp_server(SearchTools(data, pool))

    def stop(number: int, frame: FrameType | None) -> None:
        end_now(leave)  # a thread waits for the next line of stdin and cannot be stopped

    earlier = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        asyncio.run(_serve_stdio(server))
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    if pool.is_busy or data.is_opening:
        end_now(leave)


async def _serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        try:
            await server.run(read, write, server.create_initialization_options())
        finally:
            sys.stdout.flush()  # what was printed and waits in a buffer goes to stderr as long as this block is open


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send everything that is printed inside the block to stderr. The client reads only messages on stdout."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def mcp_server(tools: SearchTools) -> Server[Any]:
    """Return the server of the tools, for any transport."""

    async def list_tools(context: ServerRequestContext[Any], page: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools.listed())

    async def call_tool(context: ServerRequestContext[Any], call: CallToolRequestParams) -> CallToolResult:
        return await tools.call(call.name, call.arguments or {})

    return Server("r2med", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


BATCH_REFUSAL = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32600, "message": "Send one message at a time: MCP has no batches since version 2025-06-18."},
}


class MCPEndpoint:
    """The ASGI application of POST /mcp. Each request is answered by itself, without a session."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. It is cancelled if the client disconnects."""
        request = Request(scope, receive)
        body = await read_body(request)
        if body.lstrip()[:1] == b"[":  # removed from the protocol; the library would answer in its own words
            await JSONResponse(BATCH_REFUSAL, 400)(scope, receive, send)
            return
        # The answer is one JSON text. It is sent when it is complete, so that a failure before that can be reported.
        for message in await unless_gone(request, self._answer(scope, body)):
            await send(message)

    async def _answer(self, scope: Scope, body: bytes) -> list[Message]:
        received: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Message] = []

        async def receive() -> Message:
            return received.pop() if received else await asyncio.get_running_loop().create_future()

        async def send(message: Message) -> None:
            sent.append(message)

        # A manager without sessions holds nothing, so each request has its own, and none outlives its request.
        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=limits.MAX_BODY
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)
        return sent
