"""A corpus behind HTTP: `POST /retrieve` in the protocol of Search-R1, for agents that run elsewhere."""

from typing import TYPE_CHECKING

from r2med.lazy import lazily

if TYPE_CHECKING:
    from r2med.serve.http_app import create_app
    from r2med.serve.request_limits import Limits
    from r2med.serve.served_corpus import ServedCorpus, open_served_corpus

__all__ = ["Limits", "ServedCorpus", "create_app", "open_served_corpus"]

__getattr__ = lazily(
    __name__,
    {
        "create_app": "r2med.serve.http_app",
        "Limits": "r2med.serve.request_limits",
        "ServedCorpus": "r2med.serve.served_corpus",
        "open_served_corpus": "r2med.serve.served_corpus",
    },
)
