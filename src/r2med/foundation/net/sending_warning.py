"""Say before texts are sent to another machine, once for each server."""

from __future__ import annotations

import logging

from r2med.foundation.net.endpoint import Endpoint

log = logging.getLogger("r2med")


def warn_before_sending(endpoint: Endpoint, warned: set[str]) -> None:
    """Log that texts are about to be sent to a server on another machine. It is added to `warned`, and said once."""
    if not endpoint.is_local and endpoint.server not in warned:
        warned.add(endpoint.server)
        refusal = "offline (--offline)"
        log.warning("texts are sent to %s, on another machine; Ctrl-C stops, %s refuses", endpoint.server, refusal)
