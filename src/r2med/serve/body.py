"""Reading a request's body: no more of it than is allowed, and not for ever."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from r2med.serve.limits import Limits
from r2med.serve.refusals import Refused, busy


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body. One that is too large is refused before it is read, or as soon as it turns out to be."""
    too_large = Refused(413, f"the request is larger than this server takes, {limits.body:,} bytes")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limits.body):
        raise too_large
    read = bytearray()
    try:
        async with asyncio.timeout(limits.seconds):
            async for chunk in request.stream():
                read += chunk
                if len(read) > limits.body:  # chunked, so that no length was told
                    raise too_large
    except TimeoutError:
        raise Refused(408, f"the request did not arrive within {limits.seconds} seconds") from None
    except ClientDisconnect:
        raise Refused(400, "the request ended before it was complete") from None  # there is nobody to read it
    except asyncio.CancelledError:  # the server stops, and still owes an answer
        raise busy("the server is stopping") from None
    return bytes(read)


async def gone(request: Request) -> None:
    """Return when the client has gone; only for a request whose body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
