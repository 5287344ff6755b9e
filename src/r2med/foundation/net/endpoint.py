"""The address of a service and its key, from flags and the environment. Neither is ever shown."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.offline import is_loopback, is_offline, is_planning, refuse
from r2med.foundation.store import digest

log = logging.getLogger("r2med")


@dataclass(frozen=True)
class Endpoint:
    """A base URL with its provider and the variable of its key."""

    provider: str
    key_variable: str
    url: str = field(repr=False)
    """The base URL; empty for the provider's own. Its path may hold a token, so it is never shown completely."""

    def __post_init__(self) -> None:
        # Checked here and not only when sending: cached answers of a remote LLM once needed the network, too.
        if self.is_refused and not is_planning():
            raise refuse(self.server)

    @property
    def is_refused(self) -> bool:
        """Return True if nothing may be sent to the server, because this process is offline."""
        return is_offline() and not self.is_local

    def missing(self, needs_key: bool) -> str:
        """Return the problem that prevents a request, on one line; empty if there is none."""
        if self.is_refused:
            return f"offline, and {self.server} is not this machine"
        return f"{self.key_variable} is not set; export it before the run" if needs_key and not self.has_key else ""

    @property
    def digest(self) -> str:
        """Return a digest of the address, which is never shown. Two servers may give one name to two models."""
        if not self.url:
            return ""
        parts = urlsplit(self.url)
        return digest([parts.scheme, parts.hostname, parts.port, parts.path])[:12]

    @property
    def server(self) -> str:
        """Return the server's name for messages."""
        host = urlsplit(self.url).netloc
        return f"{self.provider} at {host}" if host else self.provider

    @property
    def is_local(self) -> bool:
        """Return True if the server runs on this machine."""
        host = urlsplit(self.url).hostname
        return bool(host) and is_loopback(host)

    @property
    def has_key(self) -> bool:
        """Return True if the environment holds a key."""
        return bool(os.environ.get(self.key_variable, "").strip())

    @property
    def is_open(self) -> bool:
        """Return True if others can read the requests: HTTP without TLS to another machine."""
        return urlsplit(self.url).scheme == "http" and not self.is_local

    def key(self, in_clear: bool = False) -> str:
        """Return the key. It is read when it is needed, so that a run with only cached texts needs no key.

        Raises UserError if others could read it on the network, unless `in_clear` allows this.
        """
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise UserError(f"{self.provider} needs a key; set the environment variable {self.key_variable}")
        if self.is_open and not in_clear:
            raise UserError(
                f"{self.server} uses http://, over which {self.key_variable} would be sent without encryption; "
                f"give an https:// address, or unset {self.key_variable} if the server needs no key"
            )
        if not (key.isascii() and key.isprintable()):  # the HTTP library's error would show it
            raise UserError(f"{self.key_variable} has characters that cannot be part of a key; copy it again")
        return key

    def hide(self, text: str) -> str:
        """Return a server's text as one short line without our secrets, which it may have echoed."""
        for secret in (os.environ.get(self.key_variable, "").strip(), self.url, urlsplit(self.url).path):
            if len(secret) >= 6:  # keys like "none" or "x", common for local servers, are parts of normal words
                text = text.replace(secret, "[hidden]")
        text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        return text if len(text) <= 200 else f"{text[:200]}…"


def endpoint_at(url: str, provider: str, key_variable: str) -> Endpoint:
    """Return the endpoint at a base URL. Raises UserError if it is not a URL or holds a secret."""
    parts = parts_of_url(url.strip())
    if url and parts is None:
        raise UserError(f"the base URL given for {provider} is not a URL; it should look like https://HOST/v1")
    if parts and (parts.username is not None or parts.query or parts.fragment):  # HTTP libraries log the URL
        raise UserError(
            f"the base URL given for {provider} must have no password or query; the key goes in {key_variable}"
        )
    return Endpoint(provider, key_variable, url.strip().rstrip("/"))


def parts_of_url(url: str) -> SplitResult | None:
    """Return the parts of a URL of the web, or None if it is not one."""
    try:
        parts = urlsplit(url)
        is_of_web = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    return parts if is_of_web and url.isprintable() else None


def warn_before_sending(endpoint: Endpoint, warned: set[str]) -> None:
    """Log that texts are about to be sent to a server on another machine. It is added to `warned`, and said once."""
    if not endpoint.is_local and endpoint.server not in warned:
        warned.add(endpoint.server)
        refusal = "offline (--offline)"
        log.warning("texts are sent to %s, on another machine; Ctrl-C stops, %s refuses", endpoint.server, refusal)
