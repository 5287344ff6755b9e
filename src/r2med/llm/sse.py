"""Server-sent events: the data of each, from a stream of bytes cut anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event; comments, which servers send to keep a connection alive, are left out.

    Split at line feeds only: the SDK's way splits at U+2028 too, which may stand unescaped inside JSON.
    """
    rest = b""
    data: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if rest.startswith(b"data:"):
        data.append(rest.rstrip(b"\r")[5:].removeprefix(b" "))
    if data:
        yield b"\n".join(data)
