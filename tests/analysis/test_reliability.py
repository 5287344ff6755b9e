"""How far figures can be trusted."""

from pathlib import Path

import pytest

from r2med import audit
from r2med.analysis.material import Material
from r2med.analysis.reliability import reliability
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.finding import VERDICT_WORDS
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.records import records, write_records


def test_a_clear_leader_keeps_its_rank_and_close_systems_do_not(tmp_path, store: Store) -> None:
    made = records({"far": 0.8, "near": 0.4, "nearer": 0.401}, {"Biology": 40, "PMC-Clinical": 40})
    section = reliability(Material(Runtime(store=store), results=write_records(made, tmp_path / "results")))
    ranks = {row[0]: row for table in section.tables if table.name == "reliability-ranks" for row in table.rows}
    assert ranks["far"][2] == Estimate(1.0, 1.0, 1.0)
    assert ranks["far"][4] == 1.0
    assert {ranks["near"][2].high, ranks["nearer"][2].high} == {3.0}
    removal = next(table for table in section.tables if table.name == "reliability-removal")
    assert [row[2] for row in removal.rows] == ["far", "far"]


def test_the_findings_of_the_audit_are_shown_for_each_dataset(results: Path, store: Store) -> None:
    section = reliability(Material(Runtime(store=store), results=results))
    (table,) = (table for table in section.tables if table.name == "reliability-labels")
    rows = {row[1]: row for row in table.rows}
    assert list(rows) == ["detectable-gap", "unjudged-documents"]
    found = {finding.id: finding for finding in audit("demo/MedQA-Diag", results=results).findings}
    for check, row in rows.items():
        assert row[0] == "demo/MedQA-Diag"
        assert row[2:] == [VERDICT_WORDS[found[check].verdict], found[check].sentence]


def test_one_system_says_nothing_of_ranks(tmp_path, store: Store) -> None:
    results = write_records(records({"alone": 0.5}, {"Biology": 5}), tmp_path / "results")
    with pytest.raises(UserError, match="two systems"):
        reliability(Material(Runtime(store=store), results=results))
