"""Groups of diagnoses are known by the table of synonyms that made them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from r2med.construction.diagnosis_groups import groups_key
from r2med.foundation.store import Store


def test_a_synonym_table_that_was_changed_gives_another_key(tmp_path: Path) -> None:
    streams = SimpleNamespace(path=lambda name: tmp_path / name)
    keys = []
    for word in ("infarct", "infarkt"):
        (tmp_path / "table.tsv").write_text(f"heart attack\t{word}\n")
        keys.append(groups_key(cast(Any, streams), "table.tsv", Store(tmp_path / "store")))
    assert keys[0] != keys[1]
