"""Where a provider of embeddings is: the options first, then the environment, then its own place."""

from __future__ import annotations

import os

from r2med.net.endpoint import Endpoint, endpoint_at
from r2med.setup import Setup


def endpoint(provider: str, key_variable: str, url_variable: str, options: Setup) -> Endpoint:
    """Return where a provider is."""
    url = dict(options.endpoints).get(provider) or os.environ.get(url_variable, "").strip()
    return endpoint_at(url, provider, key_variable)
