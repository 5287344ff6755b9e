"""Download dataset repositories of the hub at pinned revisions, once, into the hub's own cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from r2med.core.errors import MissingExtraError, UserError
from r2med.data.dataset_cards import Hub
from r2med.store import Store, digest

ANSWER_SECONDS = 20
"""Seconds to wait for an answer of the hub."""


def snapshot(hub: Hub, store: Store) -> Path:
    """Return the local folder of a repository at its pinned revision, and fetch it first if necessary.

    The hub's client needs the network to know if a snapshot is complete. A finished download is therefore recorded
    in the store, and the network is not needed again.
    """
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError:
        raise MissingExtraError(f"{hub.repository} is on the hub: reading it", "hub") from None
    name, revision = hub.repository, hub.revision

    def download(offline: bool) -> Path:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision, local_files_only=offline))

    note = _note(hub)
    if store.recall(note) is not None:
        try:
            return download(offline=True)
        except Exception:  # the cache has been emptied: fetch again
            store.forget(note)
    try:
        # Ask for the list first: without a network it fails at once, but a download would retry for half a minute.
        listed = HfApi().dataset_info(name, revision=revision, timeout=ANSWER_SECONDS).siblings or ()
        folder = download(offline=False)
    except Exception as error:  # the client's many exceptions all mean the same to a user
        return _given_by_hand(hub, download, error)
    if all((folder / file.rfilename).is_file() for file in listed):  # the client may return an incomplete download
        store.remember(note, {"repository": name, "revision": revision})
    return folder


def is_fetched(hub: Hub, store: Store) -> bool:
    """Return True if a repository was fetched before, so that reading it needs no network."""
    return store.recall(_note(hub)) is not None


def _note(hub: Hub) -> str:
    return digest(["hub snapshot", hub.repository, hub.revision])


def _given_by_hand(hub: Hub, download: Callable[[bool], Path], error: Exception) -> Path:
    # A full cache may have been copied to a machine without a network. The layout checks that all files exist.
    try:
        return download(True)
    except Exception:
        reason = str(error).split("\n")[0][:160] or type(error).__name__
        raise UserError(
            f"cannot fetch {hub.repository} from the hub ({reason}): try again online, or give a local copy, "
            f"e.g. run(data='DIR/{hub.repository.split('/')[-1]}')"
        ) from None
