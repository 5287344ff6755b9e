"""Entries with repeats: all of them are needed, each once, and as many as the lock states."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import UserError
from r2med.data import load
from r2med.data.dataset import Dataset
from r2med.evaluation.records.record import record_key
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store, digest
from r2med.models.llm.chat import repeat_seed
from support import chat_server as api
from support.chat_server import by_seed
from support.datasets import random_folder
from support.facts import states

SYSTEM = "hyde(m) → bm25"
Body = dict[str, Any]


class Folder:
    """The results of three repeats, and the entry of them."""

    def __init__(self, root: Path, data: Dataset, runtime: Runtime) -> None:
        self.root, self.data, self.runtime = root, data, runtime
        self.results = root / "results"
        r2med.lock(SYSTEM, data, root / "plan.lock", repeats=3, setup=runtime)
        r2med.run(data=data, out=self.results, lock=root / "plan.lock", setup=runtime)
        r2med.submit([self.results], root / "entry.json")
        (self.results / "plan.lock").write_bytes((root / "plan.lock").read_bytes())
        self.body: Body = json.loads((root / "entry.json").read_text())

    def with_two_repeats(self, few: Path) -> Path:
        """Copy all results, and the lock, but the last repeat."""
        for file in self.results.rglob("*"):
            record = json.loads(file.read_text()) if file.suffix == ".json" else {}
            if file.is_file() and record.get("settings", {}).get("repeat") != 2:
                (few / file.relative_to(self.results)).parent.mkdir(parents=True, exist_ok=True)
                (few / file.relative_to(self.results)).write_bytes(file.read_bytes())
        return few

    def fault(self, edit: Callable[[list[Body]], object]) -> str:
        """Return the first fault of the entry after an edit of its records, with every digest made right again."""
        body = copy.deepcopy(self.body)
        del body["checksum"]
        edit(body["records"])
        for record in body["records"]:
            record["key"] = record_key(record["settings"], record["dataset"]["fingerprint"])
            record["seeds"] = {"expand llm": repeat_seed(42, record["settings"].get("repeat", 0))}
        file = self.root / "edited.json"
        file.write_text(json.dumps({**body, "checksum": digest(body)}))
        checked = r2med.verify([file], self.results, data=[self.data], store=self.runtime.store)
        return next((each.fault for each in checked if each.fault), "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    root = tmp_path_factory.mktemp("repeats")
    data = load(random_folder(root / "mini", documents=40))
    with api.serve(by_seed) as server, Runtime(base_url=server.address, store=Store(root / "store")) as runtime:
        yield Folder(root, data, runtime)


def without_lock(records: list[Body]) -> None:
    for record in records:
        record["lock"] = ""


def test_an_entry_has_all_repeats_and_they_match(folder: Folder) -> None:
    assert [record["settings"].get("repeat", 0) for record in folder.body["records"]] == [0, 1, 2]
    assert folder.fault(lambda records: None) == ""


def test_a_repeat_that_is_left_out_is_missed(folder: Folder) -> None:
    states(folder.fault(lambda records: records.pop(1)), "repeat 1", SYSTEM)
    states(folder.fault(lambda records: records.pop(0)), "repeat 0")


def test_a_last_repeat_that_is_left_out_is_missed_with_a_lock_only(folder: Folder) -> None:
    states(folder.fault(lambda records: records.pop()), "lock", "3 runs", "2")

    def unlocked(records: list[Body]) -> None:
        without_lock(records)
        records.pop()

    assert folder.fault(unlocked) == "", "docs/repeats.md says so"


def test_a_doubled_repeat_is_refused(folder: Folder) -> None:
    states(folder.fault(lambda records: records.append(records[1])), "two records", "repeat 1")


def test_a_renumbered_repeat_is_refused(folder: Folder) -> None:
    states(folder.fault(lambda records: records[2]["settings"].update(repeat=5)), "repeat 2", "missing")

    def chosen(records: list[Body]) -> None:
        without_lock(records)
        records[:] = [records[2]]

    states(folder.fault(chosen), "repeat 0", "missing")


@pytest.mark.parametrize("number", [0, -1, "1", 1.5, True])
def test_a_repeat_that_is_not_a_number_above_0_is_refused(folder: Folder, number: object) -> None:
    assert "repeat" in folder.fault(lambda records: records[1]["settings"].update(repeat=number))


def test_repeats_with_different_settings_are_refused(folder: Folder) -> None:
    def warmer(records: list[Body]) -> None:
        without_lock(records)
        records[1]["settings"]["expand"]["sampling"]["temperature"] = 0.1

    states(folder.fault(warmer), "repeat 1", "repeat 0", "temperature", "0.1")


def test_datasets_of_a_system_need_the_same_repeats(folder: Folder, tmp_path: Path) -> None:
    other = load(random_folder(tmp_path / "other", documents=30))
    r2med.run(SYSTEM, other, repeats=2, out=tmp_path / "results", setup=folder.runtime)
    sources = [folder.results, tmp_path / "results"]
    with pytest.raises(UserError) as refused:
        r2med.submit(sources, tmp_path / "entry.json")
    states(refused.value, "3 times", "2 times", "mini", "other")


def test_run_and_compare_keep_to_the_number_of_the_lock(folder: Folder, tmp_path: Path) -> None:
    lock = folder.root / "plan.lock"
    with pytest.raises(UserError) as refused:
        r2med.run(data=folder.data, out=folder.results, lock=lock, repeats=2, setup=folder.runtime)
    states(refused.value, "3", "2")
    few = folder.with_two_repeats(tmp_path / "few")
    with pytest.raises(UserError) as missing:
        r2med.compare(results=few, lock=lock)
    states(missing.value, "0, 1", "0 to 2")


def test_submit_and_verify_refuse_another_number_than_that_of_the_lock_in_the_same_words(
    folder: Folder, tmp_path: Path
) -> None:
    few = folder.with_two_repeats(tmp_path / "few")
    fault = folder.fault(lambda records: records.pop())
    with pytest.raises(UserError) as refused:
        r2med.submit([few], tmp_path / "entry.json")
    states(refused.value, SYSTEM, fault)
    (few / "plan.lock").unlink()
    with pytest.raises(UserError) as lost:
        r2med.submit([few], tmp_path / "entry.json")
    states(lost.value, "its lock is missing")
    assert not (tmp_path / "entry.json").exists()
