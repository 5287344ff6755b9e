"""Files that version 0.2 wrote (`version-0.2/`, made by its own code): they are read, compared, verified and shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

import r2med

WRITTEN = Path(__file__).parent / "version-0.2"
SCHEMAS = Path(__file__).parents[3] / "docs/schemas"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN, tmp_path / "results"))


def test_records_are_read_with_the_scores_that_0_2_printed(results: Path) -> None:
    records = [r2med.Record.read(path) for path in sorted(results.glob("demo/Biology/*.json"))]
    assert {record.versions["r2med"] for record in records} == {"0.2.0"}
    assert {record.system: f"{100 * record.mean['nDCG@10']:.2f}" for record in records} == {
        "bm25": "27.59",
        "hyde(author) → bm25": "92.81",
    }
    assert all(record.files_are_sound(results / "demo/Biology") for record in records)


@pytest.mark.parametrize(("schema", "pattern"), [("record", "demo/Biology/*.json"), ("entry", "entry.json")])
def test_the_files_are_as_the_schemas_of_this_version_say(schema: str, pattern: str) -> None:
    declared = json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8"))
    files = list(WRITTEN.glob(pattern))
    assert files
    for file in files:
        jsonschema.validate(json.loads(file.read_bytes()), declared)
