"""Judgements, queries and documents must fit together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from r2med import Dataset, Query
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.links import empty_documents, missing_documents, scorable_queries
from r2med.data.corpus import Corpus
from r2med.data.dataset import Qrels
from r2med.foundation.pages.finding import Finding

Labels = dict[str, dict[str, int]]


def material(qrels: Labels, queries: int = 10, **texts: str) -> AuditMaterial:
    corpus = Corpus.of(({"a": "text", "b": "text", **texts}).items())
    asked = [Query(f"q{number}", texts.get(f"q{number}", "what?")) for number in range(queries)]
    return AuditMaterial("d", Qrels(qrels), Dataset("d", asked, corpus, Qrels(qrels)))


def labels(count: int = 10, grade: int = 1, document: str = "a") -> Labels:
    return {f"q{number}": {document: grade} for number in range(count)}


@pytest.mark.parametrize("check", [scorable_queries, missing_documents, empty_documents])
def test_parts_that_fit_are_sound(check: Callable[[AuditMaterial], Finding]) -> None:
    finding = check(material(labels()))
    assert finding.verdict == "sound" and not finding.evidence and not any(finding.numbers.values())


@pytest.mark.parametrize(("barren", "verdict"), [(1, "look"), (3, "broken")])
def test_queries_without_a_relevant_document_are_found(barren: int, verdict: str) -> None:
    finding = scorable_queries(material({**labels(), **labels(barren, 0)}))
    assert (finding.verdict, finding.numbers["without_relevant"]) == (verdict, barren)
    assert len(finding.evidence[0].rows) == barren


def test_queries_without_judgements_never_break_a_dataset() -> None:
    finding = scorable_queries(material(labels(4)))
    assert (finding.verdict, finding.numbers["unjudged"]) == ("look", 6)


def test_judgements_of_queries_without_a_text_are_found() -> None:
    finding = scorable_queries(material({**labels(), "ghost": {"a": 1}}, q3=" "))
    assert [row[0] for row in finding.evidence[0].rows] == ["q3", "ghost"]


def test_judgements_alone_have_no_texts_to_miss() -> None:
    assert scorable_queries(AuditMaterial("qrels", Qrels(labels()))).verdict == "sound"
    assert scorable_queries(AuditMaterial("qrels", Qrels({}))).verdict == "broken"


@pytest.mark.parametrize(("missing", "verdict"), [(1, "look"), (3, "broken")])
def test_relevant_documents_that_do_not_exist_are_found(missing: int, verdict: str) -> None:
    finding = missing_documents(material({**labels(), **labels(missing, document="gone")}))
    assert (finding.verdict, finding.numbers) == (verdict, {"missing": missing, "queries": missing})


def test_an_irrelevant_document_may_be_missing() -> None:
    assert missing_documents(material({"q0": {"a": 1, "gone": 0}})).verdict == "sound"


@pytest.mark.parametrize(("relevant", "verdict"), [(0, "look"), (1, "look"), (3, "broken")])
def test_empty_documents_weigh_more_if_they_are_relevant(relevant: int, verdict: str) -> None:
    finding = empty_documents(material({**labels(), **labels(relevant, document="empty")}, empty=" \n"))
    assert (finding.verdict, finding.numbers["empty"], finding.numbers["queries"]) == (verdict, 1, relevant)
    assert finding.evidence[0].rows == (("empty", "yes" if relevant else "no"),)


def test_one_empty_document_of_many_is_sound_but_named() -> None:
    finding = empty_documents(material(labels(), empty="", **{f"d{number}": "x" for number in range(2000)}))
    assert finding.verdict == "sound" and "none of them relevant" in finding.sentence
