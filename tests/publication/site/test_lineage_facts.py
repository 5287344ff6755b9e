"""Lineage: what a record states about training data, and what compare and the board show of it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import r2med
from r2med import Record
from r2med.data.training_sheet import Lineage, TrainingSheet
from r2med.evaluation.records.collection import collect
from r2med.foundation.store import Store
from r2med.publication.site.leaderboard import site_value
from support import tiny_models
from support.datasets import write_jsonl
from support.facts import error_states, some_states

CHANCE = random.Random(3)
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def text(count: int) -> str:
    return " ".join(CHANCE.choices(WORDS, k=count))


class Made:
    """A dataset, a training set in folds, a model for each fold, and their records."""

    def __init__(self, root: Path) -> None:
        self.root, self.data, self.runs = root, root / "mine", root / "results"
        write_jsonl(self.data / "query.jsonl", [{"id": name, "text": text(15)} for name in "abcd"])
        write_jsonl(self.data / "corpus.jsonl", [{"id": name, "text": text(30)} for name in "1234"])
        rows = [{"q_id": query, "p_id": document, "score": 1} for query, document in zip("abcd", "1234", strict=True)]
        write_jsonl(self.data / "qrels.jsonl", rows)
        r2med.training_data(str(self.data), root / "train", folds=2)
        for fold in ("fold-1", "fold-2"):
            tiny_models.sentence_bert(root / "models" / fold, layers=1)
            shutil.copy(root / "train" / fold / "training.json", root / "models" / fold)
        shutil.copy(root / "train" / "folds.jsonl", root / "models")
        tiny_models.sentence_bert(root / "plain", layers=1)
        r2med.training_data(str(self.data), root / "all")
        tiny_models.sentence_bert(root / "whole", layers=2)
        shutil.copy(root / "all" / "training.json", root / "whole")
        self.systems = [f"folds:{root}/models", f"path:{root}/plain", f"path:{root}/whole", "bm25"]
        r2med.run(self.systems, str(self.data), out=self.runs, store=Store(root / "store"))

    def record(self, begin: str) -> Record:
        [file] = self.runs.rglob(f"{begin}*.json")
        return Record.read(file)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("lineage")
        patch.setenv("R2MED_HOME", str(root / "home"))
        return Made(root)


def test_a_record_states_what_each_model_was_trained_with(made: Made) -> None:
    [stage] = made.record("folds").stages
    assert [(each.name, each.queries, each.touched) for each in stage.training] == [("mine", 2, 0)] * 2
    assert sorted(query for each in stage.training for query in each.held_out) == ["a", "b", "c", "d"]
    [whole] = [s for file in made.runs.rglob("*whole*.json") for s in Record.read(file).stages]
    assert [(each.queries, each.touched, each.held_out) for each in whole.training] == [(4, 4, ())]
    assert made.record("bm25").stages[0].training == ()


def test_compare_and_the_board_show_the_overlap_or_that_it_is_not_stated(made: Made) -> None:
    notices = r2med.compare(*made.systems, results=made.runs).notices
    some_states(notices, "folds:", "trained on mine: no overlap found")
    some_states(notices, "whole", "trained on mine: overlap 100 %")
    some_states(notices, "plain", "not stated")
    assert not [notice for notice in notices if notice.startswith("bm25")]
    rows = {row["name"]: row["training"] for row in site_value(collect((), made.runs))["systems"]}
    assert [rows[name].partition(":")[2].strip() for name in made.systems[:1]] == ["no overlap found"]
    assert rows["bm25"] == ""
    assert r2med.compare("bm25", made.systems[1], results=made.runs).notices == ()


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


def test_a_fold_without_a_datasheet_states_nothing_and_the_others_state_theirs(made: Made, tmp_path: Path) -> None:
    folder, out = shutil.copytree(made.root / "models", tmp_path / "models"), tmp_path / "results"
    (folder / "fold-2" / "training.json").unlink()
    r2med.run([f"folds:{folder}", "bm25"], str(made.data), out=out, store=Store(tmp_path / "store"))
    some_states(r2med.compare(results=out).notices, "trained on mine: no overlap found; training data not stated")


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


def test_of_two_overlaps_with_one_dataset_the_larger_counts(made: Made) -> None:
    sheet = TrainingSheet.read(made.root / "whole" / "training.json")
    [largest] = [each for each in sheet.overlaps if each.dataset == "mine"]
    none = largest.model_copy(update={"touched": 0, "questions": 0, "passages": 0})
    lineage = Lineage.of(sheet, "").model_copy(update={"overlaps": (none, *sheet.overlaps)})
    data = r2med.load(str(made.data))
    assert lineage.overlap_with("mine", data.fingerprint, data.corpus.fingerprint) == largest
