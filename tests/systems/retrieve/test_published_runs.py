"""Published runs by name: found in the publisher's folder, and refused if they are not complete."""

import dataclasses
from pathlib import Path

import pytest

from r2med.data import Dataset, load
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.retrieve.run_cards import RUN_CARDS
from r2med.systems.system import System

CARD = RUN_CARDS["reasonrank-e5"]
SYSTEM = "run:reasonrank-e5"


def data() -> Dataset:
    """Return three queries of the demo under the name of the benchmark's dataset."""
    demo = load("demo/Biology")
    return dataclasses.replace(demo, name="Biology", queries=demo.queries[:3])


def clone(folder: Path, dataset: Dataset, lines: int = 100) -> Path:
    """Write a run as the repository has it. One document is listed twice for each query."""
    file = folder / CARD.file.format(dataset=dataset.name)
    file.parent.mkdir(parents=True)
    ids = dataset.corpus.ids(range(min(lines - 1, len(dataset.corpus))))
    ids = [ids[0], *ids, *[ids[-1]] * (lines - 1 - len(ids))]
    rows = [
        f"{query.id} Q0 {name} {rank} {100 - rank} e5\n" for query in dataset.queries for rank, name in enumerate(ids)
    ]
    file.write_text("".join(rows))
    return folder


def searched(folder: Path | None, dataset: Dataset, home: Path) -> list[int]:
    paths = ((CARD.name, folder),) if folder else ()
    with Runtime(model_paths=paths, store=Store(home)) as runtime:
        outcome = System.parse(SYSTEM, runtime).run(dataset, runtime.store, 100)
    return [int(found) for found in outcome.run.found]


def test_a_published_run_is_used_by_its_name(tmp_path: Path, home: Path) -> None:
    dataset = data()
    found = searched(clone(tmp_path / "clone", dataset), dataset, home)
    assert found == [min(99, len(dataset.corpus))] * 3


def test_what_is_missing_is_one_line(tmp_path: Path, home: Path) -> None:
    dataset = data()
    with pytest.raises(UserError, match=r"8421BCD/ReasonRank.*model_paths={'reasonrank-e5': 'DIR'}"):
        searched(None, dataset, home)
    with pytest.raises(UserError, match=r"e5-mistral-7b-instruct_top100\.txt"):
        searched(tmp_path, dataset, home)
    with pytest.raises(UserError, match="99 lines for query"):
        searched(clone(tmp_path / "clone", dataset, lines=99), dataset, home)
    with pytest.raises(UserError, match=r"demo/Biology.*IIYi-Clinical"):
        searched(tmp_path / "clone", load("demo/Biology"), home)


def test_a_path_of_the_same_name_is_a_path(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = data()
    run = clone(tmp_path / "clone", dataset) / CARD.file.format(dataset="Biology")
    run.rename(tmp_path / CARD.name)
    monkeypatch.chdir(tmp_path)
    assert searched(None, dataset, home) == [min(99, len(dataset.corpus))] * 3
