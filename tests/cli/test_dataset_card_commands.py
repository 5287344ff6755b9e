"""Commands use the dataset cards of plugins, and refuse bad ones in one line."""

from pathlib import Path

import pytest

from support.datasets import r2med_folder
from support.facts import states
from support.fork_server import Command


def plugin(root: Path, name: str, card: str) -> Path:
    (root / "datasets").mkdir(parents=True, exist_ok=True)
    (root / "datasets" / f"{name}.toml").write_text(card)
    return root


def test_a_ninth_dataset_is_one_card_more(tmp_path: Path, r2med: Command) -> None:
    ninth = 'order = 5\ntask = "clinical evidence"\nscenario = "prognosis"\nlicence = "CC0"\n'
    listed = r2med("list", "datasets", R2MED_PLUGINS=plugin(tmp_path / "mine", "Ninth", ninth))
    assert listed.returncode == 0
    assert "prognosis" in listed.stdout
    assert "group clinical-evidence: MedXpertQA-Exam, MedQA-Diag, PMC-Treatment\n" in listed.stdout
    assert "group R2MED: Biology, Bioinformatics" in listed.stdout
    assert "Ninth" not in listed.stdout.split("group R2MED")[1]


def test_a_dataset_without_a_repository_must_be_given_as_a_folder(tmp_path: Path, r2med: Command) -> None:
    folder = plugin(tmp_path / "mine", "Ninth", 'task = "clinical case"\n')
    failed = r2med("data", "check", "Ninth", R2MED_PLUGINS=folder)
    assert (failed.returncode, failed.stdout) == (2, "")
    states(failed.stderr, "Ninth", "folder", "hub")


@pytest.mark.parametrize("group", ["R2MED", "clinical-evidence"])
def test_the_groups_of_the_benchmark_take_no_others(tmp_path: Path, group: str, r2med: Command) -> None:
    failed = r2med("list", "datasets", R2MED_PLUGINS=plugin(tmp_path / "mine", "Ninth", f'groups = ["{group}"]\n'))
    assert failed.returncode == 2
    states(failed.stderr, "Ninth.toml", group, "group")


def test_a_card_of_ones_own_may_take_the_place_of_a_dataset_of_the_benchmark(tmp_path: Path, r2med: Command) -> None:
    card = f'groups = ["R2MED"]\ntask = "Q&A reference"\nfolder = "{r2med_folder(tmp_path / "mine" / "copy")}"\n'
    done = r2med("data", "check", "Biology", R2MED_PLUGINS=plugin(tmp_path / "mine", "Biology", card))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Biology: sound")


def test_cards_that_are_like_each_other_are_one_line(tmp_path: Path, r2med: Command) -> None:
    folder = plugin(tmp_path / "mine", "A", 'like = "B"\n')
    plugin(folder, "B", 'like = "A"\n')
    failed = r2med("list", "datasets", R2MED_PLUGINS=folder)
    assert failed.returncode == 2
    states(failed.stderr, ".toml", "like")
