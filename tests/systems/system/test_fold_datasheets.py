"""Datasheets beside weights: what the card of a model states, and which models of folds are refused."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import r2med
from r2med.models.encoders.model_cards import resolve_card
from support import tiny_models
from support.datasets import write_jsonl
from support.facts import error_states

CHANCE = random.Random(3)
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def text(count: int) -> str:
    return " ".join(CHANCE.choices(WORDS, k=count))


class Made:
    """A dataset, a training set in folds, a model for each fold, and one that was trained with all rows."""

    def __init__(self, root: Path) -> None:
        self.root, self.data = root, root / "mine"
        write_jsonl(self.data / "query.jsonl", [{"id": name, "text": text(15)} for name in "abcd"])
        write_jsonl(self.data / "corpus.jsonl", [{"id": name, "text": text(30)} for name in "1234"])
        rows = [{"q_id": query, "p_id": document, "score": 1} for query, document in zip("abcd", "1234", strict=True)]
        write_jsonl(self.data / "qrels.jsonl", rows)
        r2med.training_data(str(self.data), root / "train", folds=2)
        for fold in ("fold-1", "fold-2"):
            tiny_models.sentence_bert(root / "models" / fold, layers=1)
            shutil.copy(root / "train" / fold / "training.json", root / "models" / fold)
        shutil.copy(root / "train" / "folds.jsonl", root / "models")
        r2med.training_data(str(self.data), root / "all")
        tiny_models.sentence_bert(root / "whole", layers=2)
        shutil.copy(root / "all" / "training.json", root / "whole")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("datasheets")
        patch.setenv("R2MED_HOME", str(root / "home"))
        return Made(root)


def test_the_card_of_a_model_states_what_it_was_trained_with(made: Made) -> None:
    training = resolve_card(f"path:{made.root}/whole").training
    assert training is not None and training.name == "mine" and training.datasheet == "training.json"
    [mine] = [each for each in training.overlaps if each.dataset == "mine"]
    assert (mine.queries, mine.touched, mine.words) == (4, 4, "overlap 100 %")


def swapped(folder: Path) -> None:
    for one, other in (("fold-1", "x"), ("fold-2", "fold-1"), ("x", "fold-2")):
        (folder / one).rename(folder / other)


def one_fold(folder: Path) -> None:
    file = folder / "folds.jsonl"
    file.write_text(file.read_text().replace('"fold": 2', '"fold": 1'))


def whole_set(folder: Path) -> None:
    shutil.copy(folder.parent.parent / "all.json", folder / "fold-1" / "training.json")


@pytest.mark.parametrize(
    ("fault", "facts"),
    [
        (swapped, ("training.json", "fold 2 was left out", "fold 1")),
        (one_fold, ("folds.jsonl", "other queries in fold 1")),
        (whole_set, ("training.json", "no fold was left out")),
    ],
)
def test_models_that_have_seen_the_queries_of_their_fold_are_refused(
    fault: Callable[[Path], None], facts: tuple[str, ...], made: Made, tmp_path: Path
) -> None:
    shutil.copy(made.root / "all" / "training.json", tmp_path / "all.json")
    folder = shutil.copytree(made.root / "models", tmp_path / "copy" / "models")
    assert '"fold":2' in (folder / "folds.jsonl").read_text().replace(" ", "")
    fault(folder)
    with error_states(*facts):
        r2med.System.parse(f"folds:{folder}").check([r2med.load(str(made.data))])


@pytest.mark.parametrize(
    "counts", [{"queries": 0}, {"touched": -5}, {"touched": 30}, {"touched": 0}, {"passages": -1}], ids=str
)
def test_a_datasheet_with_impossible_counts_is_refused(counts: dict[str, int], made: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(made.root / "whole", tmp_path / "whole")
    sheet = json.loads((folder / "training.json").read_text())
    sheet["overlaps"][0].update(counts)
    (folder / "training.json").write_text(json.dumps(sheet))
    with error_states("training.json", "overlaps"):
        r2med.System.parse(f"path:{folder}").check([r2med.load(str(made.data))])
