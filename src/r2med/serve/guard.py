"""Who may come in: whoever knows the token, or, where there is none, programs of this machine."""

from __future__ import annotations

import hmac
import ipaddress

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from r2med.serve.refusals import Refused


class Guard:
    """Stands before every path."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http" or (refusal := self._refusal(Headers(scope=scope))) is None:
            await self._app(scope, receive, send)
            return
        await JSONResponse({"detail": refusal.line}, refusal.status, refusal.headers)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Refused | None:
        if self._token is None:
            # A web page may have its own name point at this machine and so read, through its visitor's
            # browser, what is served here; the name it was called by gives it away.
            if is_loopback(_host(headers.get("host", ""))):
                return None
            return Refused(403, "without a token this server answers only to localhost, 127.0.0.1 and [::1]")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Headers are decoded as Latin-1; back to bytes, they are what was sent. Compared in constant time.
        right = hmac.compare_digest(given.strip().encode("latin-1"), self._token)
        if scheme.lower() == "bearer" and right:
            return None
        line = "this server needs its token: send the header Authorization: Bearer TOKEN"
        return Refused(401, line, {"WWW-Authenticate": "Bearer"})


def _host(header: str) -> str:
    """Return a Host header without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
