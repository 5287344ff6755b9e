"""How this installation came about, and the command that adds an optional part to it.

No command names r2med without an address: the name is not ours on any package index, so a stranger could register it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

PLACEHOLDER = "REPLACE-WITH-THE-ADDRESS"
"""Part of the repository's address until the repository is published."""


def install_extra(extra: str) -> str:
    """Return the command that installs an optional part, or several with commas between them, for this installation."""
    return f"{_installer()} install {requirement(extra)}"


def requirement(extras: str) -> str:
    """Return what the installer must be given for r2med with these extras, quoted for a shell.

    It is the clone that this code runs from, the place that r2med was installed from (direct_url.json of PEP 610), or
    else the repository at the tag of this version.
    """
    clone = Path(__file__).parents[4]
    if clone / "src" in Path(__file__).parents and (clone / "pyproject.toml").is_file():
        return f"-e {shlex.quote(f'{clone}[{extras}]')}"
    return _from_origin(_direct_url(), extras) or _from_repository(extras)


def _from_origin(origin: Mapping[str, Any], extras: str) -> str:
    """Return the requirement for the place that a file direct_url.json names. Empty if it names no place."""
    address = str(origin.get("url", ""))
    if not address:
        return ""
    if "vcs_info" in origin:
        commit = origin["vcs_info"]["commit_id"]
        return shlex.quote(f"r2med[{extras}] @ {origin['vcs_info']['vcs']}+{address}@{commit}")
    if address.startswith("file:"):
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"{editable}{shlex.quote(f'{unquote(urlsplit(address).path)}[{extras}]')}"
    sha256 = origin.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    return shlex.quote(f"r2med[{extras}] @ {address}{f'#sha256={sha256}' if sha256 else ''}")


def _from_repository(extras: str) -> str:
    from r2med.foundation.core.version import __version__

    address = repository()
    if not address or PLACEHOLDER in address:
        return f"-e '.[{extras}]' in a clone of r2med"
    return shlex.quote(f"r2med[{extras}] @ git+{address}@v{__version__}")


def repository() -> str:
    """Return the address of the repository that the package's metadata state; empty if r2med is not installed."""
    lines = _metadata("METADATA").partition("\n\n")[0].splitlines()
    named = (line.partition(", ")[2] for line in lines if line.startswith("Project-URL: Repository, "))
    return next(named, "")


def _direct_url() -> Mapping[str, Any]:
    written = json.loads(_metadata("direct_url.json") or "{}")
    return written if isinstance(written, dict) else {}


def _installer() -> str:
    return "uv pip" if _metadata("INSTALLER").strip() == "uv" else "pip"


@cache
def _metadata(file: str) -> str:
    """Return the text of a metadata file of the installed package. Empty if the file is missing."""
    from importlib import metadata

    try:
        return metadata.distribution("r2med").read_text(file) or ""
    except metadata.PackageNotFoundError:
        return ""
