"""A name of the benchmark counts only with the benchmark's data; other data of that name are the user's own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import pytest

from r2med.data import load
from r2med.data.benchmark_names import known_fingerprints, source_of
from r2med.data.dataset_cards import DatasetCard, bundled_cards, demo_folder
from r2med.data.loading import name_of
from r2med.foundation.store import Store, default_store
from r2med.foundation.store.holdings import dataset_labels
from support.datasets import r2med_folder
from support.facts import states

QUERIES, POSITIVES, MOST = 103, 374, 19
"""Of Biology, as its card says."""


def copy_of_biology(root: Path, last_text: str = "text") -> Path:
    """Write a dataset with as many queries and relevant documents as Biology has."""
    counts = [MOST, *[3] * (QUERIES - 1)]
    counts[1:50] = [4] * 49
    assert sum(counts) == POSITIVES
    pairs = [(f"q{query}", f"d{document}") for query, count in enumerate(counts) for document in range(count)]
    texts = [f"text {number}" for number in range(MOST - 1)] + [last_text]
    return r2med_folder(
        root,
        [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)],
        [{"id": f"q{number}", "text": f"query {number}"} for number in range(QUERIES)],
        [{"q_id": query, "p_id": document, "score": 1} for query, document in pairs],
    )


def test_a_folder_called_like_a_dataset_of_the_benchmark_is_the_users_own(tmp_path: Path) -> None:
    shutil.copytree(demo_folder("Biology"), tmp_path / "Biology")
    dataset = load(tmp_path / "Biology")
    assert dataset.name == name_of(tmp_path / "Biology") == "own/Biology"
    states(dataset.notices[-1], tmp_path / "Biology", "own/Biology", "fingerprint")
    assert dataset.instruction.kind == "Biology post"  # the words for models still follow the folder's name


@pytest.mark.parametrize("name", ["Biology", "demo/Biology"])
def test_a_card_in_a_folder_cannot_claim_a_name_of_the_benchmark(name: str, tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "mine")
    (folder / "card.toml").write_text(f'name = "{name}"\n')
    assert load(folder).name == "own/Biology"


def test_a_plugin_card_cannot_put_other_data_in_the_place_of_the_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plugin/datasets").mkdir(parents=True)
    (tmp_path / "plugin/datasets/Biology.toml").write_text(f'folder = "{r2med_folder(tmp_path / "mine")}"\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
    assert load("Biology").name == name_of("Biology") == "own/Biology"


def test_other_data_of_the_hub_or_put_there_by_hand_are_not_the_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    (tmp_path / "plugin/datasets").mkdir(parents=True)
    hub = f'[hub]\nrepository = "another/Biology"\nrevision = "{"a" * 40}"\n'
    (tmp_path / "plugin/datasets/Biology.toml").write_text(hub)
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda *_: r2med_folder(tmp_path / "fetched"))
    assert load("Biology", store).name == "own/Biology"
    r2med_folder(store.root / "by-hand/BioASQ")
    dataset = load("BioASQ", store)
    assert dataset.name == name_of("BioASQ", store) == "own/BioASQ"
    states(dataset.notices[-1], "fingerprint", "BioASQ", "not known")


def test_a_copy_is_the_users_own_until_the_benchmarks_fingerprint_is_known(tmp_path: Path) -> None:
    dataset = load(copy_of_biology(tmp_path / "Biology"))
    assert dataset.name == name_of(tmp_path / "Biology") == "own/Biology"
    states(dataset.notices[-1], "r2med data check hub:R2MED/Biology")  # never the folder itself


def test_where_the_benchmark_was_fetched_its_fingerprint_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda *_: copy_of_biology(tmp_path / "hub/Biology"))
    fetched = load("Biology", store)
    assert (fetched.name, fetched.source) == ("Biology", source_of("Biology"))
    assert known_fingerprints("Biology", store) == {fetched.fingerprint}
    assert load(copy_of_biology(tmp_path / "same/Biology"), store).name == "Biology"
    other = load(copy_of_biology(tmp_path / "other/Biology", last_text="another text"), store)
    assert other.name == name_of(tmp_path / "other/Biology", store) == "own/Biology"
    states(other.notices[-1], "own/Biology", "Biology")


def test_a_copy_with_the_fingerprint_of_the_card_is_known_without_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_of_biology(tmp_path / "Biology")
    card = bundled_cards()["Biology"].model_copy(update={"fingerprint": load(folder).fingerprint})
    monkeypatch.setitem(cast(dict[str, DatasetCard], bundled_cards()), "Biology", card)
    dataset = load(folder)
    assert dataset.name == name_of(folder) == "Biology"
    assert dataset.label in dataset_labels(default_store())  # so that `cache clear` finds its documents
    assert load(copy_of_biology(tmp_path / "other/Biology", last_text="another text")).name == "own/Biology"
