"""Check this machine for r2med: versions, devices, extras, the cache, API keys and endpoints."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import installed_versions
from r2med.foundation.engine.threads import cores
from r2med.foundation.net.endpoint import Endpoint, endpoint_at
from r2med.foundation.net.http import Client, RequestFailed, run_sync
from r2med.foundation.store import Store
from r2med.models.crossencoders.rerank_apis import RERANK_APIS
from r2med.models.encoders.devices import devices
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS
from r2med.models.llm.llm_cards import LLMS

ANSWER_SECONDS = 5.0
"""Seconds to wait for the answer of an endpoint."""

_EXTRA = re.compile(r"""(?P<package>[\w.-]+)[^;]*;.*extra\s*==\s*["'](?P<extra>[\w-]+)["']""")


@dataclass(frozen=True)
class Diagnosis:
    """The state of this machine. API keys are only reported as present or missing, and are never shown."""

    versions: dict[str, str]
    """Package -> its version."""
    devices: tuple[str, ...]
    """Devices on which models can run."""
    cores: int
    """Number of CPU cores that r2med uses."""
    extras: dict[str, tuple[str, ...]]
    """Extra -> packages that are not installed. Empty if the extra works."""
    cache: Path
    """The folder of the cache."""
    cache_free: int
    """Free bytes on the disk of the cache; 0 if the cache cannot be written."""
    keys: dict[str, bool]
    """Variable of a key -> True if it is set."""
    endpoints: dict[str, str]
    """Server -> why it does not answer. Empty if it answers."""
    model: tuple[str, ...] = ()
    """What was found when a model was loaded and tried. Empty without a model."""


def diagnosed(base_url: str, store: Store) -> Diagnosis:
    """Check this machine: versions, devices, extras, the cache, API keys and endpoints."""
    variables = [card.api_key_env for card in LLMS.values()] + [each.key_variable for each in EMBEDDING_APIS.values()]
    variables += [api.key_variable for api in RERANK_APIS.values() if api.urls]  # a user's own servers rarely need one
    keys = {name: bool(os.environ.get(name, "").strip()) for name in dict.fromkeys([*variables, "HF_TOKEN"])}
    of_environment = [os.environ.get(each.url_variable, "").strip() for each in EMBEDDING_APIS.values()]
    endpoints = [
        endpoint_at(url, "endpoint", "OPENAI_API_KEY") for url in dict.fromkeys([base_url, *of_environment]) if url
    ]
    return Diagnosis(
        versions=installed_versions(),
        devices=devices("auto") if importlib.util.find_spec("torch") else (),
        cores=cores(),
        extras=_extras(),
        cache=store.root,
        cache_free=_free(store.root),
        keys=keys,
        endpoints={endpoint.server: _fault(endpoint) for endpoint in endpoints},
    )


def _extras() -> dict[str, tuple[str, ...]]:
    """Return the missing packages of each extra except `all`, from the metadata of the installed package."""
    try:
        lines = metadata.requires("r2med") or []
    except metadata.PackageNotFoundError:  # r2med runs from its source and is not installed
        return {}
    lacking: dict[str, tuple[str, ...]] = {}
    for match in filter(None, map(_EXTRA.match, lines)):
        missing = () if match["package"] == "r2med" or _is_installed(match["package"]) else (match["package"],)
        lacking[match["extra"]] = lacking.get(match["extra"], ()) + missing
    lacking.pop("all", None)  # its packages are those of the others
    return lacking


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _free(root: Path) -> int:
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    return shutil.disk_usage(there).free if os.access(there, os.W_OK) else 0


def _fault(endpoint: Endpoint) -> str:
    """Return why a server does not answer. Any reply to an empty request is an answer. No key is sent."""

    async def ask() -> None:
        async with Client(endpoint, ANSWER_SECONDS) as client:
            await client.post("/models", {})

    try:
        run_sync(ask())
    except RequestFailed as failure:
        return str(failure) if failure.unreachable or failure.kind == "timeout" else ""
    except UserError as error:
        return str(error)
    return ""
