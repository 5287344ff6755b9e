"""Download dataset repositories of the hub at pinned revisions, once, into the hub's own cache."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data.dataset_cards import Hub
from r2med.data.layouts.hub_listing import (
    README,
    HubTable,
    Role,
    card_configs,
    choose,
    local_names,
    local_tables,
    tables,
)
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, digest
from r2med.foundation.text.plurals import counted, shown_bytes

ANSWER_SECONDS = 20
"""Seconds to wait for an answer of the hub."""

BYTES_PER_SECOND = 10_000_000
"""The assumed speed of a download, which is stated beside the minutes."""

log = logging.getLogger("r2med")

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class FetchedTables:
    """The tables of a dataset in the local folder of its repository."""

    folder: Path
    hub: Hub
    """The source, with its revision as a commit."""
    tables: Mapping[Role, HubTable]


def announce_downloads(hubs: Sequence[Hub]) -> None:
    """Log in one line how much will be downloaded, and about how long it takes. Nothing is logged without a network.

    Of a repository with several datasets only some files may be fetched, so its size is the most that it can be.
    """
    repositories = {(hub.repository, hub.revision): hub for hub in hubs}
    try:
        files = [file for hub in repositories.values() for file in _info(hub, with_sizes=True).siblings or ()]
    except Exception:  # the download reports it
        return
    if not (size := sum(file.size or 0 for file in files)):
        return
    most = "" if all(hub.is_whole for hub in repositories.values()) else "at most "
    minutes = counted(max(1, round(size / BYTES_PER_SECOND / 60)), "minute")
    speed = f"{shown_bytes(BYTES_PER_SECOND)} a second"
    where = counted(len(repositories), "repository", "repositories")
    log.info("%s of the hub will be fetched: %s%s, about %s at %s", where, most, shown_bytes(size), minutes, speed)


def snapshot(hub: Hub, store: Store) -> Path:
    """Return the local folder of a repository at its pinned revision, and fetch it first if necessary.

    The hub's client needs the network to know if a snapshot is complete. A finished download is therefore recorded
    in the store, and the network is not needed again.
    """
    note = _note(hub)
    if (recorded := store.recall(note)) is not None:
        if folder := _cached(hub, recorded.get("files", ())):
            return folder
        store.forget(note)
    try:
        # Ask for the list first: without a network it fails at once, but a download would retry for half a minute.
        files = _file_names(hub)
        folder = _download(hub)
    except Exception as error:  # the client's many exceptions all mean the same to a user
        return _given_by_hand(hub, error)
    if all((folder / file).is_file() for file in files):  # the client may return an incomplete download
        store.remember(note, {"repository": hub.repository, "revision": hub.revision, "files": files})
    return folder


def fetch_tables(asked: Hub, store: Store) -> FetchedTables:
    """Return the tables of one dataset of a repository, and fetch their files first if necessary.

    Only the files of these tables are fetched. The commit of a revision that is not one, and the choice of files, are
    recorded in the store, so that the network is not needed again. Raises UserError if the tables cannot be chosen.
    """
    hub = pinned(asked, store)
    note = _note(hub)
    if recorded := store.recall(note):
        rows = recorded["tables"].items()
        chosen = {role: HubTable(config, split, tuple(files)) for role, (config, split, *files) in rows}
        if folder := _cached(hub, _files(chosen)):
            return FetchedTables(folder, hub, chosen)
        store.forget(note)
    try:
        names = _file_names(hub)
        readme = [name for name in names if name == README]
        configs = card_configs(_download(hub, readme)) if readme else []
    except Exception as error:
        return _local_tables(hub, _given_by_hand(hub, error))
    chosen = choose(tables(names, configs), hub, names)
    try:
        folder = _download(hub, [*readme, *_files(chosen)])
    except Exception as error:
        raise _unreachable(hub, error) from None
    content = {role: [table.config, table.split, *table.files] for role, table in chosen.items()}
    store.remember(note, {"repository": hub.repository, "revision": hub.revision, "tables": content})
    return FetchedTables(folder, hub, chosen)


def _local_tables(hub: Hub, folder: Path) -> FetchedTables:
    """Return the tables in a cache that the user filled by hand, or into which another part was fetched before."""
    names = local_names(folder)
    try:
        return FetchedTables(folder, hub, choose(local_tables(folder), hub, names))
    except UserError as error:
        raise UserError(f"{error} (in the local cache; the hub is out of reach)") from None


def pinned(hub: Hub, store: Store) -> Hub:
    """Return the source with a commit as its revision.

    Without a revision, the newest commit is looked up once and recorded. A branch or a tag is looked up each time; out
    of reach of the hub, its last known commit is used.
    """
    if _COMMIT.fullmatch(hub.revision):
        return hub
    note = digest(["hub revision", hub.repository, hub.revision])
    known = str((store.recall(note) or {}).get("revision", ""))
    if known and not hub.revision:
        return hub.model_copy(update={"revision": known})
    try:
        commit = str(_info(hub).sha or "")
    except Exception as error:
        commit = known or _given_by_hand(hub, error).name  # the hub's cache may have been copied to this machine
    if commit != known:
        store.remember(note, {"revision": commit})
    return hub.model_copy(update={"revision": commit})


def is_fetched(hub: Hub, store: Store) -> bool:
    """Return True if a repository was fetched before, so that reading it needs no network."""
    if not hub.revision:
        known = store.recall(digest(["hub revision", hub.repository, ""]))
        return known is not None and is_fetched(hub.model_copy(update=known), store)
    return store.recall(_note(hub)) is not None


def _note(hub: Hub) -> str:
    part = [] if hub.is_whole else [hub.config, hub.split, hub.files.model_dump() if hub.files else None]
    return digest(["hub snapshot", hub.repository, hub.revision, *part])


def _info(hub: Hub, with_sizes: bool = False) -> Any:
    from huggingface_hub import HfApi

    return HfApi().dataset_info(
        hub.repository, revision=hub.revision or None, timeout=ANSWER_SECONDS, files_metadata=with_sizes
    )


def _file_names(hub: Hub) -> list[str]:
    return [file.rfilename for file in _info(hub).siblings or ()]


def _download(hub: Hub, files: Sequence[str] | None = None, offline: bool = False) -> Path:
    """Download these files of a repository, or all, into the hub's cache, and return its folder there."""
    from huggingface_hub import snapshot_download

    # Brackets around these signs make a pattern that matches only the file of this name.
    patterns = None if files is None else [re.sub(r"([*?[])", r"[\1]", file) for file in files]
    path = snapshot_download(
        hub.repository,
        repo_type="dataset",
        revision=hub.revision or None,
        local_files_only=offline,
        allow_patterns=patterns,
    )
    return Path(path)


def _cached(hub: Hub, files: Sequence[str]) -> Path | None:
    """Return the folder of a repository in the hub's cache; None if one of these files is not there."""
    try:
        folder = _download(hub, files, offline=True)
    except Exception:  # the cache has been emptied
        return None
    return folder if all((folder / file).is_file() for file in files) else None


def _files(chosen: Mapping[Role, HubTable]) -> list[str]:
    return list(dict.fromkeys(file for table in chosen.values() for file in table.files))


def _given_by_hand(hub: Hub, error: Exception) -> Path:
    # A full cache may have been copied to a machine without a network. The layout checks that all files exist.
    try:
        return _download(hub, offline=True)
    except Exception:
        raise _unreachable(hub, error) from None


def _unreachable(hub: Hub, error: Exception) -> UserError:
    # One sentence, and not cut: Results.errors counts errors that differ in names and commits only as one.
    reason = re.split(r"\.\s|\n", str(error))[0] or type(error).__name__
    return UserError(
        f"cannot fetch {hub.repository} from the hub ({reason}): try again online, or give a local copy, e.g. data "
        f"(--data DIR/{hub.repository.split('/')[-1]})",
    )
