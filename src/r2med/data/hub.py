"""Download dataset repositories of the hub at pinned revisions, once, into the hub's own cache."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data.dataset_cards import Hub
from r2med.data.layouts.hub_listing import HubTable, Role, card_configs, choose, local_names, local_tables, tables
from r2med.data.layouts.hub_tables import UnknownColumnsError
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


def announce_downloads(hubs: Sequence[Hub], store: Store) -> None:
    """Log in one line how much will be downloaded, and about how long it takes. Nothing is logged without a network.

    Of a repository with several datasets only some files may be fetched, so its size is the most that it can be.
    """
    missing = {(hub.repository, hub.revision): hub for hub in hubs if not is_fetched(hub, store)}
    try:
        files = [file for hub in missing.values() for file in _info(hub, with_sizes=True).siblings or ()]
    except Exception:  # the download reports it
        return
    if not missing or not (size := sum(file.size or 0 for file in files)):
        return
    most = "" if all(hub.is_whole for hub in missing.values()) else "at most "
    minutes = counted(max(1, round(size / BYTES_PER_SECOND / 60)), "minute")
    speed = f"{shown_bytes(BYTES_PER_SECOND)} a second"
    where = counted(len(missing), "repository", "repositories")
    log.info("%s of the hub will be fetched: %s%s, about %s at %s", where, most, shown_bytes(size), minutes, speed)


def snapshot(hub: Hub, store: Store) -> Path:
    """Return the local folder of a repository at its pinned revision, and fetch it first if necessary.

    The hub's client needs the network to know if a snapshot is complete. A finished download is therefore recorded
    in the store, and the network is not needed again.
    """
    download = _downloader(hub)
    note = _note(hub)
    if store.recall(note) is not None:
        try:
            return download(None, True)
        except Exception:  # the cache has been emptied: fetch again
            store.forget(note)
    try:
        # Ask for the list first: without a network it fails at once, but a download would retry for half a minute.
        listed = _info(hub).siblings or ()
        folder = download(None, False)
    except Exception as error:  # the client's many exceptions all mean the same to a user
        return _given_by_hand(hub, download, error)
    if all((folder / file.rfilename).is_file() for file in listed):  # the client may return an incomplete download
        store.remember(note, {"repository": hub.repository, "revision": hub.revision})
    return folder


def fetch_tables(asked: Hub, store: Store) -> FetchedTables:
    """Return the tables of one dataset of a repository, and fetch their files first if necessary.

    Only the files of these tables are fetched. The commit of a revision that is not one, and the choice of files, are
    recorded in the store, so that the network is not needed again. Raises UserError if the tables cannot be chosen.
    """
    hub = pinned(asked, store)
    download = _downloader(hub)
    note = _note(hub)
    if known := store.recall(note):
        fetched = _recorded(known)
        try:
            folder = download(_files(fetched), True)
            if all((folder / file).is_file() for file in _files(fetched)):
                return FetchedTables(folder, hub, fetched)
        except Exception:  # the cache has been emptied: fetch again
            store.forget(note)
    try:
        names = [file.rfilename for file in _info(hub).siblings or ()]
        readme = [name for name in names if name == "README.md"]
        configs = card_configs(download(readme, False) / readme[0]) if readme else []
    except Exception as error:
        return _local_tables(hub, _given_by_hand(hub, download, error))
    fetched = choose(tables(names, configs), hub, names)
    try:
        folder = download([*readme, *_files(fetched)], False)
    except Exception as error:
        raise _unreachable(hub, error) from None
    content = {role: [table.config, table.split, *table.files] for role, table in fetched.items()}
    store.remember(note, {"repository": hub.repository, "revision": hub.revision, "tables": content})
    return FetchedTables(folder, hub, fetched)


def stated_licence(folder: Path) -> str:
    """Return the licence that a repository card states; empty if it states none or cannot be read."""
    readme = folder / "README.md"
    try:
        from huggingface_hub import metadata_load

        metadata = metadata_load(readme) if readme.is_file() else None
    except Exception:  # any YAML error: the licence is then not stated
        return ""
    return str(metadata.get("license") or "") if isinstance(metadata, dict) else ""


def guessed_folder(fetched: FetchedTables, name: str, unknown: UnknownColumnsError, store: Store) -> tuple[Path, str]:
    """Return a folder in R2MED's layout made of tables with unknown columns, and the guess of `data import`.

    Raises UserError if the guesser finds no documents either.
    """
    from r2med.data.tables.importing import plan_import

    files = dict.fromkeys(fetched.folder / file for table in fetched.tables.values() for file in table.files)

    def build(folder: Path) -> dict[str, Any]:
        try:
            plan = plan_import(list(files))
        except UserError as error:
            raise UserError(f"{unknown}; {error}") from None
        plan.write(folder / "dataset")
        return {"dataset": name, "guess": "; ".join(_guess(part) for part in plan.parts)}

    names = [str(file.relative_to(fetched.folder)) for file in files]
    key = digest(["hub guess 1", fetched.hub.repository, fetched.hub.revision, names])
    made = store.about(name).make("hub", key, build)
    return made.path / "dataset", str(made.meta["guess"])


def _guess(part: Any) -> str:
    columns = ", ".join(f"{role}: {column}" for role, column in part.columns.items())
    return f"{part.kind} from {part.table} ({columns})"


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
        commit = known or _cached_commit(hub, error)
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


Download = Callable[[Sequence[str] | None, bool], Path]
"""Download these files, or all, and return the folder. The second argument forbids the use of the network."""


def _downloader(hub: Hub) -> Download:
    from huggingface_hub import snapshot_download

    def download(files: Sequence[str] | None, offline: bool) -> Path:
        patterns = None if files is None else [_literal(file) for file in files]
        path = snapshot_download(
            hub.repository,
            repo_type="dataset",
            revision=hub.revision or None,
            local_files_only=offline,
            allow_patterns=patterns,
        )
        return Path(path)

    return download


def _literal(file: str) -> str:
    """Return a pattern that matches only this file."""
    return re.sub(r"([*?[])", r"[\1]", file)


def _recorded(known: Mapping[str, Any]) -> dict[Role, HubTable]:
    return {role: HubTable(config, split, tuple(files)) for role, (config, split, *files) in known["tables"].items()}


def _files(chosen: Mapping[Role, HubTable]) -> list[str]:
    return list(dict.fromkeys(file for table in chosen.values() for file in table.files))


def _cached_commit(hub: Hub, error: Exception) -> str:
    """Return the commit of a repository in the hub's cache, which may have been copied to this machine."""
    return _given_by_hand(hub, _downloader(hub), error).name


def _given_by_hand(hub: Hub, download: Download, error: Exception) -> Path:
    # A full cache may have been copied to a machine without a network. The layout checks that all files exist.
    try:
        return download(None, True)
    except Exception:
        raise _unreachable(hub, error) from None


def _unreachable(hub: Hub, error: Exception) -> UserError:
    # One sentence, and not cut: Results.errors counts errors that differ in names and commits only as one.
    reason = re.split(r"\.\s|\n", str(error))[0] or type(error).__name__
    return UserError(
        f"cannot fetch {hub.repository} from the hub ({reason}): try again online, or give a local copy, e.g. data "
        f"(--data DIR/{hub.repository.split('/')[-1]})",
    )
