"""folds:DIR with models of several seeds: each repeat asks those of another seed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import transformers

import r2med
from r2med import Record, Setup, System
from r2med.data.fold_file import Folds
from r2med.evaluation.running.batch import plan_run
from r2med.evaluation.running.planning import planned_run
from r2med.foundation.store import Store
from support import tiny_models
from support.facts import error_states, states
from systems.system.test_folds import DATA, FOLD, lines, made, rankings

SEEDS = 3
MANY = r2med.Dataset.of(
    {f"q{number}": sentence for number, sentence in enumerate(2 * tiny_models.SENTENCES)},
    dict(DATA.corpus),
    {f"q{number}": {f"d{number % 5}": 1} for number in range(2 * len(tiny_models.SENTENCES))},
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeds")
    for seed in range(SEEDS):
        made(folder / f"seed-{seed}", tiny_models.sentence_bert, transformers.AutoModel, 10 * seed)
        (folder / f"seed-{seed}" / "folds.jsonl").replace(folder / "folds.jsonl")
    return folder


def records(results: Path) -> list[Record]:
    return sorted(map(Record.read, results.rglob("folds*.json")), key=lambda record: record.repeat)


def test_each_repeat_asks_the_models_of_its_seed(models: Path, tmp_path: Path) -> None:
    r2med.run(f"folds:{models}", DATA, out=tmp_path / "results", store=Store(tmp_path / "store"), repeats=SEEDS)
    found = records(tmp_path / "results")
    assert [(record.repeat, record.varies) for record in found] == [(0, True), (1, True), (2, True)]
    assert len({record.run.sha256 for record in found if record.run}) == SEEDS
    store = Store(tmp_path / "again")
    for seed, system in enumerate(System.parse(f"folds:{models}").in_repeat(seed) for seed in range(SEEDS)):
        run = system.run(DATA, 7).run
        alone = {fold: rankings(f"path:{models}/seed-{seed}/fold-{fold}", store) for fold in (1, 2)}
        joined = dict(zip(run.queries, run.id_lists(), strict=True))
        assert joined == {query: alone[fold][query] for query, fold in FOLD.items()}


def test_compare_takes_seeds_as_runs(models: Path, tmp_path: Path) -> None:
    folder, out = shutil.copytree(models, tmp_path / "models"), tmp_path / "results"
    Folds.of(lines(MANY)).write(folder / "folds.jsonl")
    systems = [f"folds:{folder}", f"path:{folder}/seed-0/fold-1"]
    r2med.run(systems, MANY, out=out, store=Store(tmp_path / "store"), repeats=SEEDS)
    compared = r2med.compare(results=out, baseline=systems[1])
    [folds] = [standing for standing in compared.systems if standing.system.startswith("folds:")]
    [before] = [standing for standing in compared.systems if standing.system.startswith("path:")]
    assert (folds.run_words, before.run_words) == ("3 runs", "deterministic")


def test_more_repeats_than_seeds_are_refused_before_anything_is_run(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = r2med.run(f"folds:{models}", DATA, out=out, store=Store(tmp_path / "store"), repeats=5)
    [row] = done.rows
    states(row.errors[0], "3 seeds", "no repeat 4", "--repeats 3", "seed-3")
    assert not list(out.rglob("*.json"))


def test_a_plan_lists_the_models_of_all_seeds_that_repeats_ask(models: Path, tmp_path: Path) -> None:
    setup, system = Setup(store=Store(tmp_path)), f"folds:{models}"
    planned = [
        len(planned_run(plan_run([system], [DATA], repeats=repeats, setup=setup)).rows[0].needs) for repeats in (1, 3)
    ]
    assert planned == [2, 6]
    with error_states("no repeat 3"):
        planned_run(plan_run([system], [DATA], repeats=4, setup=setup))


def test_one_seed_has_the_key_and_the_single_run_of_a_folder_without_seeds(models: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "plain", tmp_path / "one" / "seed-0"):
        shutil.copytree(models / "seed-0", folder)
    for folder in ("plain", "one"):
        shutil.copy(models / "folds.jsonl", tmp_path / folder)
    systems = [System.parse(f"folds:{tmp_path}/{folder}") for folder in ("plain", "one")]
    assert [system.varies for system in systems] == [False, False]
    keys = [system.stage_keys(DATA)["retrieve"] for system in systems]
    assert [key.keys() for key in keys] == [{"stage", "folds", "models"}] * 2
    revisions = [[part["query"]["revision"] for part in key["models"]] for key in keys]
    assert revisions[0] == revisions[1]
    out = tmp_path / "results"
    r2med.run([system.name for system in systems], DATA, out=out, store=Store(tmp_path / "store"), repeats=5)
    assert [Record.read(file).repeat for file in out.rglob("*.json")] == [0, 0]


def test_a_lock_states_the_models_of_all_seeds(models: Path, tmp_path: Path) -> None:
    setup, out = Setup(store=Store(tmp_path / "store")), tmp_path / "results"
    folder = shutil.copytree(models, tmp_path / "models")
    systems, lock = [f"folds:{folder}", "bm25"], tmp_path / "plan.lock"
    with error_states("no repeat 3"):
        r2med.lock(systems, DATA, out=lock, repeats=4, setup=setup)
    r2med.lock(systems, DATA, out=lock, repeats=SEEDS, setup=setup)
    r2med.run(data=DATA, lock=lock, out=out, setup=setup)
    assert len(records(out)) == SEEDS
    assert r2med.compare(lock=lock, results=out).pairs
    shutil.copytree(folder / "seed-0", folder / "seed-2", dirs_exist_ok=True)
    with error_states("other settings", "locked"):
        r2med.run(data=DATA, lock=lock, out=out, setup=setup)


@pytest.mark.parametrize(
    ("fault", "facts"),
    [
        (lambda folder: shutil.rmtree(folder / "seed-1"), ("seed-1", "missing")),
        (lambda folder: shutil.rmtree(folder / "seed-1" / "fold-2"), ("fold 2", "missing", "seed-1")),
        (lambda folder: shutil.copytree(folder / "seed-0" / "fold-1", folder / "fold-1"), ("fold-1", "seed-0")),
        (lambda folder: (folder / "folds.jsonl").unlink(), ("folds.jsonl", "cannot be read")),
    ],
    ids=("seed", "fold of a seed", "both forms", "file of folds"),
)
def test_a_folder_of_seeds_that_cannot_be_used_is_refused(
    fault: object, facts: tuple[str, ...], models: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(models, tmp_path / "models")
    assert callable(fault)
    fault(folder)
    with error_states(*facts):
        System.parse(f"folds:{folder}").check([DATA])
