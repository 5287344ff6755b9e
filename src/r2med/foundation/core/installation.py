"""The commands that add optional parts to this installation, and whether a part is there.

They do not name r2med: the name is not ours on any package index, so a stranger could register it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec

EXTRA_OF_MODULE: Mapping[str, str] = {
    "torch": "models",
    "transformers": "models",
    "sentence_transformers": "models",
    "openvino": "openvino",
    "xllamacpp": "local",
    "ray": "cluster",
    "trafilatura": "build",
    "ir_datasets": "irds",
    "mcp": "mcp",
}
"""Module -> the optional part of r2med that installs it."""


def install_extra(extra: str) -> str:
    """Return the command that installs an optional part, or several with commas between them."""
    return f"pip install -e '.[{extra}]' in the clone of r2med"


def missing_part(modules: Iterable[str]) -> str:
    """Return the optional part that installs the first of these modules that is missing; empty if all are there.

    No module is imported.
    """
    return next((EXTRA_OF_MODULE[module] for module in modules if find_spec(module) is None), "")
