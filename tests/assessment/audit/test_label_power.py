"""What labels can tell about systems: findings from plain values."""

from __future__ import annotations

import numpy as np
import pytest

from r2med import Dataset, Query
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.label_power import gap_finding, label_distribution, single_relevant, unjudged_finding
from r2med.data.corpus import Corpus
from r2med.data.dataset import Qrels
from r2med.evaluation.measure.gap_curve import GapCurve

NO_SYSTEMS = np.empty((0, 0))


@pytest.mark.parametrize(
    ("queries", "verdict"), [(0, "broken"), (1, "broken"), (2, "broken"), (8, "look"), (199, "sound"), (1000, "sound")]
)
def test_the_gap_without_systems_follows_from_the_number_of_queries(queries: int, verdict: str) -> None:
    finding = gap_finding(queries, NO_SYSTEMS)
    assert finding.verdict == verdict
    assert queries < 2 or "an assumption without two systems" in finding.sentence


def test_the_gap_of_two_systems_is_that_of_the_curve() -> None:
    values = np.random.default_rng(4).uniform(0, 100, (2, 40))
    finding = gap_finding(40, values)
    curve = GapCurve.of({"": values})
    assert finding.numbers == {
        "queries": 40,
        "gap": round(curve.gap() or 0, 2),
        "systems": 2,
        "needed": curve.needed(5.0),
    }
    assert f"{curve.needed(5.0):,} queries are needed" in finding.sentence


def test_a_small_gap_needs_no_further_queries() -> None:
    values = np.tile(np.linspace(0, 100, 500), (2, 1))
    values[1] += np.random.default_rng(4).normal(0, 1, 500)
    finding = gap_finding(500, values)
    assert finding.verdict == "sound" and "needed" not in finding.numbers
    assert "points of nDCG@10 cannot be shown" in finding.sentence


def test_one_system_or_equal_systems_show_no_spread() -> None:
    for values in (np.full((1, 30), 50.0), np.full((2, 30), 50.0)):
        assert "an assumption" in gap_finding(30, values).sentence


@pytest.mark.parametrize(
    ("judged", "verdict", "share"), [(10, "sound", 0.0), (8, "sound", 0.2), (7, "look", 0.3), (0, "look", 1.0)]
)
def test_the_share_without_a_label_decides(judged: int, verdict: str, share: float) -> None:
    ranking = [f"d{number}" for number in range(20)]
    qrels = {"q": {"far": 1} | {f"d{number}": number % 2 for number in range(judged)}}
    finding = unjudged_finding(qrels, {"a": {"q": ranking}, "b": {"q": ranking}})
    assert (finding.verdict, finding.numbers) == (verdict, {"share": pytest.approx(share), "systems": 2})
    assert ("r2med judge" in finding.sentence) == (verdict == "look")
    assert finding.evidence[0].rows == (("a", round(100 * share, 2)), ("b", round(100 * share, 2)))


def test_relevant_labels_alone_are_named() -> None:
    assert "Only relevant documents are listed" in unjudged_finding({"q": {"a": 1}}, {"s": {"q": ["a"]}}).sentence
    assert "count as irrelevant" in unjudged_finding({"q": {"a": 1, "b": 0}}, {"s": {"q": ["a"]}}).sentence


def material(qrels: dict[str, dict[str, int]], *body_systems: str) -> AuditMaterial:
    queries = [Query(query, "text", body_system=system) for query, system in zip(qrels, body_systems, strict=False)]
    return AuditMaterial("d", Qrels(qrels), Dataset("d", queries, Corpus.of([("a", "x")]), Qrels(qrels)))


@pytest.mark.parametrize(("single", "verdict"), [(0, "sound"), (2, "sound"), (3, "look"), (4, "look")])
def test_queries_with_one_relevant_document_are_counted(single: int, verdict: str) -> None:
    qrels = {f"q{n}": {"a": 1, "b": int(n >= single), "c": 0} for n in range(4)}
    finding = single_relevant(material(qrels))
    assert (finding.verdict, finding.numbers["queries"]) == (verdict, single)


def test_labels_are_described_by_grade_and_body_system() -> None:
    finding = label_distribution(
        material({"1": {"a": 2, "b": 0}, "2": {"a": 1}, "3": {"b": 1, "c": 1}}, "Heart", "", "Skin")
    )
    assert finding.verdict == "sound"
    grades, systems = finding.evidence
    assert grades.rows == ((2, 1), (1, 3), (0, 1))
    assert systems.rows == (("Heart", 1, 1, 1.0, 1), ("Skin", 1, 2, 2.0, 0), ("not stated", 1, 1, 1.0, 1))
    assert finding.numbers["small_slices"] == 2 and "2 of 3 body systems" in finding.sentence


def test_without_body_systems_labels_are_described_by_grade_alone() -> None:
    finding = label_distribution(material({"1": {"a": 1}}))
    assert [table.title for table in finding.evidence] == ["Labels by grade"]
