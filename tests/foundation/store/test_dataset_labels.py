"""Labels of datasets: the name, and the folder where a user's folder has that name."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import artefact_datasets, dataset_label, labels_of
from r2med.foundation.store.memo import memo_rows

ONE, TWO = (dataset_label("notes", Path(f"/ward{ward}/notes")) for ward in "AB")


def test_a_folder_means_its_own_label_and_the_name_that_may_be_its_own() -> None:
    labels = [ONE, TWO, "notes", "other"]
    assert labels_of("notes", Path("/wardA/notes"), labels) == [ONE, "notes"]
    assert labels_of("renamed", Path("/wardA/notes"), labels) == [ONE, "notes"]
    assert labels_of("notes", Path("/wardC/notes"), labels) == ["notes"]


def test_a_name_means_the_only_folder_that_has_it() -> None:
    assert labels_of("notes", None, [ONE, "notes", "notes (2)"]) == ["notes", ONE]
    with pytest.raises(UserError, match="2 folders have a dataset notes: name one of them: /wardA/notes, /wardB/notes"):
        labels_of("notes", None, [ONE, TWO])


def test_what_is_made_or_used_through_a_view_of_the_store_has_its_labels(store: Store) -> None:
    inner = store.about("build").about("ward", model="bge")
    made = inner.make("index", "key", lambda folder: {"size": 1})
    assert made.meta["about"] == {"model": "bge"}
    assert store.about("later").get("index", "key") is not None
    assert artefact_datasets(made.path) == ["build", "later", "ward"]
    inner.remember("note", {"a": 1})
    assert store.about("later").recall("note") == {"a": 1}
    assert store.about("alone").about(alone=True).recall("note") == {"a": 1}
    assert [name for name in ("alone", "build", "later", "ward") if store.notes_about(name)] == [
        "build",
        "later",
        "ward",
    ]
    assert store.labels.datasets == () and inner.with_policy("live").labels == inner.labels


def test_a_view_shares_what_its_store_made_and_opened(store: Store) -> None:
    fresh = store.with_policy("fresh")
    fresh.about("ward").make("index", "key", lambda folder: {})
    assert fresh.get("index", "key") is not None and fresh.about("other").get("index", "key") is not None
    live = store.with_policy("live")
    assert live.about("ward").memo_file("journal", "chat") == live.memo_file("journal", "chat")


def test_rows_have_the_labels_that_their_file_was_opened_with(store: Store) -> None:
    file = store.memo_file("scores", "model")
    for datasets in (["a"], ["b"], []):
        with memo_rows(file, datasets) as rows:
            rows.put({b"own" + bytes(len(datasets)): b"1"})
            rows.get([b"own\0"])
    with memo_rows(file) as rows:
        assert rows.datasets() == ["a", "b"] and rows.keys_about("b") == [b"own\0"]
