"""The hub: dataset repositories at pinned revisions, downloaded once into the hub's own cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from r2med.core.errors import MissingExtraError, UserError
from r2med.data.dataset_cards import Hub
from r2med.store import Store, digest

PATIENCE = 20
"""Seconds within which the hub must answer."""


def snapshot(hub: Hub, store: Store) -> Path:
    """Return the local folder of a repository at its pinned revision, fetched if it is not there yet.

    The hub's client tells a complete snapshot from a broken-off one only by asking the network. A finished
    download is therefore noted in the store: after that the network is never needed again.
    """
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError:
        raise MissingExtraError(f"{hub.repository} lies on the hub: reading it", "hub") from None
    name, revision = hub.repository, hub.revision

    def download(offline: bool) -> Path:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision, local_files_only=offline))

    note = _note(hub)
    if store.recall(note) is not None:
        try:
            return download(offline=True)
        except Exception:  # the cache was emptied since: fetch again
            store.forget(note)
    try:
        # The list comes first: without a network it fails at once, where the download would try for half a minute.
        listed = HfApi().dataset_info(name, revision=revision, timeout=PATIENCE).siblings or ()
        folder = download(offline=False)
    except Exception as error:  # whatever the client raises, it means one thing to a user
        return _given_by_hand(hub, download, error)
    if all((folder / file.rfilename).is_file() for file in listed):  # broken off, the client may return what it has
        store.remember(note, {"repository": name, "revision": revision})
    return folder


def is_fetched(hub: Hub, store: Store) -> bool:
    """Tell whether a repository was fetched before: then reading it needs no network."""
    return store.recall(_note(hub)) is not None


def _note(hub: Hub) -> str:
    return digest(["hub snapshot", hub.repository, hub.revision])


def _given_by_hand(hub: Hub, download: Callable[[bool], Path], error: Exception) -> Path:
    # A machine without a network may have been given a full cache; the layout checks that its files are there.
    try:
        return download(True)
    except Exception:
        reason = str(error).split("\n")[0][:160] or type(error).__name__
        raise UserError(
            f"cannot fetch {hub.repository} from the hub ({reason}): try again online, or give a local copy, "
            f"e.g. --data DIR/{hub.repository.split('/')[-1]}"
        ) from None
