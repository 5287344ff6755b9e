"""A corpus behind HTTP: `POST /retrieve` in the protocol of Search-R1, for agents that run elsewhere."""

from typing import TYPE_CHECKING

from r2med.lazy import lazily

if TYPE_CHECKING:
    from r2med.serve.app import create_app
    from r2med.serve.limits import Limits
    from r2med.serve.shelf import Shelf, open_shelf

__all__ = ["Limits", "Shelf", "create_app", "open_shelf"]

__getattr__ = lazily(
    __name__,
    {
        "create_app": "r2med.serve.app",
        "Limits": "r2med.serve.limits",
        "Shelf": "r2med.serve.shelf",
        "open_shelf": "r2med.serve.shelf",
    },
)
