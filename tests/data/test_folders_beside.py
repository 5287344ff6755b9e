"""A dataset folder in the current directory is meant by its name, also where a known set has this name."""

import json
import logging
import shutil
from pathlib import Path

import pytest

from r2med.data import load, names
from r2med.data.check import check
from r2med.data.dataset_cards import bundled_cards
from r2med.data.dataset_word import DatasetWord, dataset_names, given_data, hub_word
from r2med.data.loading import load_dataset
from r2med.foundation.core.errors import UserError
from support.datasets import r2med_folder
from support.facts import states

SCIFACT = "hub:mteb/scifact:test"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    caplog.set_level(logging.INFO, "r2med")
    return tmp_path


def typed(word: str) -> str:
    return str(DatasetWord.typed(word))


def test_a_dataset_folder_with_the_name_of_a_known_set_is_taken_and_one_line_says_so(
    here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    r2med_folder(here / "SciFact")
    assert given_data("SciFact") == dataset_names(["SciFact"]) == ["./SciFact"]
    states(caplog.messages[0], "./SciFact", SCIFACT)
    assert load("SciFact").name == "own/SciFact"
    assert typed("./SciFact") == "./SciFact"


def test_the_known_set_beside_such_a_folder_is_its_word_of_the_hub(here: Path) -> None:
    r2med_folder(here / "SciFact")
    assert DatasetWord.parse(SCIFACT).name == "SciFact"
    with pytest.raises(UserError, match="mteb/scifact"):  # it would be fetched
        load(SCIFACT)


@pytest.mark.parametrize("name", [name for name, card in bundled_cards().items() if card.hub])
def test_the_word_of_the_hub_of_a_known_set_names_this_set(name: str) -> None:
    assert DatasetWord.parse(hub_word(bundled_cards()[name].hub)).name == name


def test_an_unrelated_folder_with_the_name_of_a_known_set_is_not_taken(
    here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (here / "Biology").mkdir()
    assert given_data("Biology") == ["Biology"]
    states(caplog.messages[0], "./Biology", "not a dataset", "hub:R2MED/Biology")


def test_nothing_is_said_where_only_one_of_both_exists(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    r2med_folder(here / "mine")
    assert given_data(["Biology", "mine", "R2MED", "demo"]) == ["Biology", "mine", "R2MED", "demo"]
    assert not caplog.messages


def test_a_path_in_python_is_always_the_folder(here: Path) -> None:
    r2med_folder(here / "demo")
    assert given_data(Path("demo")) == ["./demo"]


def test_a_group_and_the_demo_keep_their_names_and_one_line_names_the_folder(
    here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    r2med_folder(here / "R2MED/Biology")
    assert given_data("R2MED") == ["R2MED"]
    states(caplog.messages[0], "./R2MED")
    r2med_folder(here / "demo/Biology")
    assert load("demo/Biology").name == "demo/Biology"
    states(caplog.messages[1], "./demo/Biology")


def test_members_of_groups_and_names_in_records_are_known_sets_whatever_folders_are_here(here: Path) -> None:
    r2med_folder(here / "Biology")
    assert "Biology" in names("R2MED")
    with pytest.raises(UserError, match="R2MED/Biology"):  # it would be fetched
        load_dataset("Biology")


def test_files_of_labels_stay_with_the_folder(here: Path) -> None:
    r2med_folder(here / "SciFact")
    assert typed("SciFact+mine.jsonl") == "./SciFact+mine.jsonl"


def test_a_card_of_the_user_that_names_the_folder_is_used(
    here: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = r2med_folder(here / "ward")
    (here / "plugin/datasets").mkdir(parents=True)
    (here / "plugin/datasets/ward.toml").write_text(f'folder = "{folder}"\nscenario = "ward"\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(here / "plugin"))
    assert typed("ward") == "ward"
    assert not caplog.messages
    elsewhere = shutil.move(folder, here / "elsewhere")
    (here / "plugin/datasets/ward.toml").write_text(f'folder = "{elsewhere}"\n')
    r2med_folder(here / "ward")
    assert typed("ward") == "./ward"
    states(caplog.messages[0], "./ward", elsewhere)


def test_the_name_and_the_label_of_a_word_are_those_of_the_loaded_dataset(here: Path) -> None:
    """Nothing is read for them, and stored things must be found by them before a dataset is loaded."""
    (r2med_folder(here / "ward") / "card.toml").write_text('name = "notes"\n')
    r2med_folder(here / "Biology")
    label = {"dataset": "notes", "query": "1", "document": "d2", "grade": 1, "judge": "x"}
    (here / "mine.jsonl").write_text(json.dumps(label) + "\n")
    for typed_word in ("ward", "ward+mine.jsonl", "demo/Biology+mine.jsonl", "Biology", Path("Biology")):
        word, dataset = DatasetWord.typed(typed_word), load(typed_word)
        assert (word.record_name, word.label) == (dataset.name, dataset.label)
    assert DatasetWord.parse("irds:beir/scifact/test").record_name == "beir/scifact/test"


def test_a_check_of_a_dataset_with_labels_names_the_command_without_them(here: Path) -> None:
    with pytest.raises(UserError, match=r"r2med data check demo/Biology$"):
        check("demo/Biology+mine.jsonl")
