"""Where a provider of embeddings is: the options first, then the environment, then its own place."""

from __future__ import annotations

import os

from r2med.encoders.options import Options
from r2med.net.endpoint import Endpoint, endpoint_at


def endpoint(provider: str, key_variable: str, url_variable: str, options: Options) -> Endpoint:
    """Return where a provider is."""
    url = dict(options.base_urls).get(provider) or os.environ.get(url_variable, "").strip()
    return endpoint_at(url, provider, key_variable)
