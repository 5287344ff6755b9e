"""Entries with measures of aspects are verified, and a forged value is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import r2med
from r2med import submit, verify
from r2med.evaluation.running.results import Results
from r2med.foundation.store import Store, digest

WITH, WITHOUT = "demo/Medical-Sciences", "demo/Bioinformatics"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aspects")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    store = Store(folder / "store")
    return r2med.run(["bm25", "bm25(scorer=lucene)"], [WITH, WITHOUT], out=folder / "runs", store=store)


def test_an_entry_with_measures_of_aspects_is_verified_and_a_forged_value_found(
    results: Results, folder: Path, tmp_path: Path
) -> None:
    entry = tmp_path / "entry.json"
    submit([folder / "runs"], entry)
    assert {checked.fault for checked in verify([entry], folder / "runs")} == {""}
    body = json.loads(entry.read_text())
    for record in body["records"]:
        for values in (record["mean"], *record["per_query"].values()):
            values["A-Recall@10"] = 1.0
    del body["checksum"]
    entry.write_text(json.dumps({**body, "checksum": digest(body)}))
    faults = {checked.dataset: checked.fault for checked in verify([entry], folder / "runs")}
    assert faults[WITH].startswith("A-Recall@10 of query")
    assert faults[WITHOUT] == f"it states A-Recall@10, but {WITHOUT} does not have the labels for it"
