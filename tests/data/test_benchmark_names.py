"""A name of the benchmark counts only with the benchmark's data; other data of that name are the user's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from r2med.data import load
from r2med.data.dataset_cards import demo_cards, demo_folder, is_known_set, source_of
from r2med.data.dataset_word import DatasetWord
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import dataset_labels
from support.datasets import r2med_folder
from support.facts import states


def test_a_folder_called_like_a_dataset_of_the_benchmark_is_the_users_own(tmp_path: Path) -> None:
    shutil.copytree(demo_folder("Biology"), tmp_path / "Biology")
    dataset = load(tmp_path / "Biology")
    assert dataset.name == DatasetWord.parse(tmp_path / "Biology").record_name == "own/Biology"
    states(dataset.notices[0], tmp_path / "Biology", "own/Biology", "known dataset Biology")
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
    assert load("Biology").name == DatasetWord.parse("Biology").record_name == "own/Biology"


def test_other_data_of_the_hub_or_put_there_by_hand_are_not_the_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    (tmp_path / "plugin/datasets").mkdir(parents=True)
    hub = f'[hub]\nrepository = "another/Biology"\nrevision = "{"a" * 40}"\n'
    (tmp_path / "plugin/datasets/Biology.toml").write_text(hub)
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda *_: r2med_folder(tmp_path / "fetched"))
    assert load("Biology", store).name == DatasetWord.parse("Biology").record_name == "own/Biology"
    r2med_folder(store.root / "by-hand/BioASQ")
    dataset = load("BioASQ", store)
    assert dataset.name == DatasetWord.parse("BioASQ").record_name == "own/BioASQ"
    states(dataset.notices[0], "own/BioASQ", "known dataset BioASQ")


def test_the_source_of_a_known_dataset_decides_and_not_its_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda *_: r2med_folder(tmp_path / "hub/Biology"))
    fetched = load("Biology", store)
    assert (fetched.name, fetched.source) == ("Biology", source_of("Biology"))
    copy = load(r2med_folder(tmp_path / "copy/Biology"), store)
    assert copy.name == DatasetWord.parse(tmp_path / "copy/Biology").record_name == "own/Biology"
    assert copy.fingerprint == fetched.fingerprint
    assert copy.label in dataset_labels(store)  # so that `cache clear` finds its documents


def test_the_demo_is_known_by_its_fingerprint() -> None:
    fingerprint = demo_cards()["demo/Biology"].fingerprint
    assert is_known_set("demo/Biology", "", fingerprint)
    assert not is_known_set("demo/Biology", "", "f" * 32)
    assert not is_known_set("mine", "", fingerprint)
