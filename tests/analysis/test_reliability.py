"""How far figures can be trusted."""

import numpy as np
import pytest

from r2med.analysis.material import Material
from r2med.analysis.reliability import reliability
from r2med.analysis.unjudged import bpref, condensed, with_unjudged_relevant
from r2med.evaluation.records.rankings import as_one, headline, judged_share
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.records import records, write_records

QRELS = {"q": {"a": 1, "b": 0}}
LISTS = {"q": ["x", "b", "a"]}


def test_unjudged_documents_bound_a_score_from_both_sides() -> None:
    low, high = headline(QRELS, LISTS), headline(with_unjudged_relevant(QRELS, LISTS), LISTS)
    best = 1 + 1 / np.log2(3)
    assert low == pytest.approx([50.0])
    assert high == pytest.approx([100 * (1 + 1 / 2) / best])


def test_judged_only_measures_leave_out_what_nobody_judged() -> None:
    assert headline(QRELS, condensed(QRELS, LISTS)) == pytest.approx([100 / np.log2(3)])
    assert bpref(QRELS, LISTS).tolist() == [0.0]
    assert bpref(QRELS, {"q": ["a", "b"]}).tolist() == [100.0]
    assert judged_share(QRELS, LISTS) == pytest.approx([200 / 3])


def test_copies_of_a_text_count_as_one_document_with_its_best_grade_and_rank() -> None:
    grades, lists = as_one({"q": {"a": 1, "b": 0}}, {"q": ["copy", "x", "a"]}, {"copy": "a"})
    assert lists == {"q": ["a", "x"]}
    assert headline(grades, lists).tolist() == [100.0]


def test_a_clear_leader_keeps_its_rank_and_close_systems_do_not(tmp_path, store: Store) -> None:
    made = records({"far": 0.8, "near": 0.4, "nearer": 0.401}, {"Biology": 40, "PMC-Clinical": 40})
    section = reliability(Material(Runtime(store=store), results=write_records(made, tmp_path / "results")))
    ranks = {row[0]: row for table in section.tables if table.name == "reliability-ranks" for row in table.rows}
    assert ranks["far"][2] == Estimate(1.0, 1.0, 1.0)
    assert ranks["far"][4] == 1.0
    assert {ranks["near"][2].high, ranks["nearer"][2].high} == {3.0}
    removal = next(table for table in section.tables if table.name == "reliability-removal")
    assert [row[2] for row in removal.rows] == ["far", "far"]


def test_one_system_says_nothing_of_ranks(tmp_path, store: Store) -> None:
    results = write_records(records({"alone": 0.5}, {"Biology": 5}), tmp_path / "results")
    with pytest.raises(UserError, match="two systems"):
        reliability(Material(Runtime(store=store), results=results))
