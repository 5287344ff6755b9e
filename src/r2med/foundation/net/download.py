"""Fetch a file from another machine. Its size and its redirects are limited."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import parts_of_url
from r2med.foundation.net.offline import is_loopback, is_offline, refuse

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
IDLE_SECONDS = 60.0


def download(url: str, path: Path, max_bytes: int) -> str:
    """Write the file at a URL to a path, and return its SHA-256. The caller compares it with the one it knows.

    Raises UserError if the file is larger than `max_bytes`, or if it cannot be had.
    """
    import httpx2

    for _ in range(MAX_REDIRECTS + 1):
        host = _host(url)
        try:
            with httpx2.stream(
                "GET",
                url,
                headers={"Accept-Encoding": "identity", "User-Agent": "r2med"},
                timeout=IDLE_SECONDS,
                follow_redirects=False,
                trust_env=not is_loopback(host),  # no proxy is used for this machine
            ) as answer:
                if not answer.is_redirect:
                    return _saved(answer, host, path, max_bytes)
                target = urljoin(url, answer.headers.get("location", ""))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise UserError(f"{host} did not send the file ({type(error).__name__}): try again later") from None
        if url.startswith("https:") and not target.startswith("https:"):
            raise UserError(f"{host} redirects to an address without encryption: give the final address")
        url = target
    raise UserError(f"{host} redirects more than {MAX_REDIRECTS} times: give the final address")


def _host(url: str) -> str:
    """Return the host of a URL. Raises UserError if it is not a URL of the web, or if this process is offline."""
    parts = parts_of_url(url)
    if parts is None or parts.username is not None:
        raise UserError("the address is not a URL such as https://HOST/FILE, or it contains a password")
    host = str(parts.hostname)
    if is_offline() and not is_loopback(host):
        raise refuse(host)
    return host


def _saved(answer: httpx2.Response, host: str, path: Path, max_bytes: int) -> str:
    if not answer.is_success:
        raise UserError(f"{host} answered HTTP {answer.status_code}: check the address")
    sha, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for block in answer.iter_raw(1 << 20):
            size += len(block)
            if size > max_bytes:
                raise UserError(f"the file of {host} is larger than {max_bytes:,} bytes, so the rest was not read")
            sha.update(block)
            file.write(block)
    return sha.hexdigest()
