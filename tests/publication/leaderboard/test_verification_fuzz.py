"""Fuzzing `verify`: records of honest entries are copied, renamed, rearranged and mixed; no false score is accepted."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import score
from r2med.data import Dataset
from r2med.data.dataset_cards import groups
from r2med.data.runs import Run
from r2med.evaluation.measure import Measure
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import sha256
from support.datasets import random_folder

VARIANTS = 120
SYSTEMS = ["bm25", "bm25(b=0.9)", "rm3 → bm25"]
DATASETS = ["demo/Biology", "demo/MedQA-Diag", "demo/PMC-Clinical"]
NAMES = [*DATASETS, *groups()["R2MED"], "demo/Bioinformatics", "mine", "R2MED", "Biology ", "biology", "../Biology"]

Body = dict[str, Any]


def exchange(*fields: str) -> Callable[[Body, Body, random.Random], None]:
    """Return a change that takes some fields of another record."""

    def change(record: Body, other: Body, chance: random.Random) -> None:
        record.update({field: copy.deepcopy(other[field]) for field in fields})

    return change


def rename_dataset(record: Body, other: Body, chance: random.Random) -> None:
    record["dataset"]["name"] = chance.choice(NAMES)


def claim_other_data(record: Body, other: Body, chance: random.Random) -> None:
    field = chance.choice(list(record["dataset"]))
    record["dataset"][field] = other["dataset"][field]


def rename_system(record: Body, other: Body, chance: random.Random) -> None:
    record["system"] = chance.choice([*SYSTEMS, "mine", "bm25 "])


def average(record: Body) -> None:
    """Make the means those of the queries, as a forger would."""
    queries = list(record["per_query"].values())
    record["mean"] = {name: sum(values[name] for values in queries) / len(queries) for name in queries[0]}


def raise_a_query(record: Body, other: Body, chance: random.Random) -> None:
    values = record["per_query"][chance.choice(list(record["per_query"]))]
    values.update({name: 1.0 for name in values if chance.random() < 0.7})
    average(record)


def shuffle_queries(record: Body, other: Body, chance: random.Random) -> None:
    values = list(record["per_query"].values())
    chance.shuffle(values)
    record["per_query"] = dict(zip(record["per_query"], values, strict=True))


def drop_a_query(record: Body, other: Body, chance: random.Random) -> None:
    dropped = chance.choice(list(record["per_query"]))
    for part in ("per_query", "queries"):
        record[part].pop(dropped, None)
    if record["per_query"]:
        average(record)


def exchange_measures(record: Body, other: Body, chance: random.Random) -> None:
    """State the values of one measure under the name of another, or leave one out."""
    taken, stated = chance.sample(list(record["mean"]), 2)
    keep = chance.random() < 0.5
    for values in (record["mean"], *record["per_query"].values()):
        values[stated] = values[taken] if keep else values.pop(taken)


def raise_ranks(record: Body, other: Body, chance: random.Random) -> None:
    for ranks in record["stages"][-1]["gold"].values():
        ranks.update(dict.fromkeys(ranks, 1))


def leave_as_it_is(record: Body, other: Body, chance: random.Random) -> None:
    """Change nothing: an honest record is accepted beside false ones."""


CHANGES = [
    *(exchange("dataset"), exchange("run"), exchange("mean", "per_query"), exchange("stages"), exchange("queries")),
    *(exchange("dataset", "queries"), exchange("run", "stages"), exchange("run", "stages", "mean", "per_query")),
    *(exchange("dataset", "queries", "mean", "per_query"), exchange("settings", "key", "system"), rename_dataset),
    *(claim_other_data, rename_system, raise_a_query, shuffle_queries, drop_a_query, exchange_measures, raise_ranks),
    leave_as_it_is,
]


def variant(honest: list[Body], chance: random.Random) -> list[Body]:
    """Return some honest records, most of them changed once or twice."""
    records = copy.deepcopy(chance.choices(honest, k=chance.randint(1, 3)))
    for record in records:
        for _ in range(chance.randint(1, 2)):
            chance.choice(CHANGES)(record, chance.choice(honest), chance)
    return records


def is_true(record: Body, runs: Mapping[str, Path], datasets: Mapping[str, Dataset]) -> bool:
    """Return True if the stated scores are what the run gives on the dataset that is named."""
    given = score(datasets[record["dataset"]["name"]].qrels, Run.read(runs[record["run"]["sha256"]], encoded=True))
    return all(abs(given.mean[Measure.parse(name)] - value) < 1e-9 for name, value in record["mean"].items())


def test_no_mixture_of_honest_records_is_accepted_with_a_false_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = random_folder(tmp_path / "hub", documents=20)
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda *_: elsewhere)
    store = Store(tmp_path / "store")
    r2med.run(SYSTEMS, DATASETS, out=tmp_path / "runs", k=20, store=store)
    r2med.submit([tmp_path / "runs"], tmp_path / "honest.json")
    honest = json.loads((tmp_path / "honest.json").read_text())["records"]
    runs = {sha256(file): file for file in (tmp_path / "runs").rglob("*.trec.gz")}
    datasets = {name: r2med.load(name, store) for name in (*DATASETS, "demo/Bioinformatics", *groups()["R2MED"])}
    chance = random.Random(24)
    seen: Counter[str] = Counter()
    for _ in range(VARIANTS):
        body = {"format": 1, "records": variant(honest, chance)}
        entry = tmp_path / "entry.json"
        entry.write_text(json.dumps({**body, "checksum": digest(body)}))
        checked = r2med.verify([entry], tmp_path / "runs", list(datasets.values()), store=store)
        accepted = [record for record, each in zip(body["records"], checked, strict=False) if not each.fault]
        seen.update(accepted=len(accepted), refused=sum(bool(each.fault) for each in checked))
        for record in accepted:
            assert is_true(record, runs, datasets), record["dataset"]["name"]
    assert seen["accepted"] > 10 and seen["refused"] > 60, seen
