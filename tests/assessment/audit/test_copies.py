"""Copies of relevant documents, equal texts with other labels, and repeated queries."""

from __future__ import annotations

import random

import pytest

from r2med import Dataset, Query
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.copies import contradictory_labels, partial_copies, repeated_queries, unlabelled_copies
from r2med.data import text_copies
from r2med.data.corpus import Corpus
from r2med.data.dataset import Qrels

CHANCE = random.Random(3)
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def text(count: int = 60) -> str:
    return " ".join(CHANCE.choices(WORDS, k=count))


TEXT = text()
HALF = " ".join([*TEXT.split()[:30], text(30)])


def material(qrels: dict[str, dict[str, int]], corpus: dict[str, str], *queries: Query) -> AuditMaterial:
    asked = queries or [Query(query, text(20)) for query in qrels]
    return AuditMaterial("d", Qrels(qrels), Dataset("d", asked, Corpus.of(corpus.items()), Qrels(qrels)))


@pytest.mark.parametrize(
    ("copy", "in_common", "verdict"),
    [(TEXT.upper(), "equal", "broken"), (f"{TEXT} etc", 0.98, "look"), (HALF, None, "sound"), (text(), None, "sound")],
)
def test_only_equal_copies_break_a_dataset(copy: str, in_common: str | float | None, verdict: str) -> None:
    finding = unlabelled_copies(material({"q": {"a": 1}}, {"a": TEXT, "b": copy}))
    assert finding.verdict == verdict
    rows = [row for table in finding.evidence for row in table.rows]
    assert [row[:3] for row in rows] == ([("q", "a", "b")] if in_common else [])
    assert not rows or rows[0][3] == (in_common if in_common == "equal" else pytest.approx(in_common, abs=0.01))


def test_a_copy_of_two_relevant_documents_is_listed_with_the_one_it_is_most_like() -> None:
    corpus = {"a": f"{TEXT} one two three", "b": f"{TEXT} etc", "copy": TEXT}
    finding = unlabelled_copies(material({"q": {"a": 1, "b": 1}}, corpus))
    assert [row[1:3] for row in finding.evidence[0].rows] == [("b", "copy")]


def test_copies_that_are_relevant_to_another_query_are_found_for_each() -> None:
    finding = unlabelled_copies(material({"p": {"a": 1}, "q": {"b": 1}}, {"a": TEXT, "b": TEXT}))
    assert {row[:3] for row in finding.evidence[0].rows} == {("p", "a", "b"), ("q", "b", "a")}
    assert finding.numbers["queries"] == 2


def test_empty_documents_are_no_copies_of_each_other() -> None:
    assert unlabelled_copies(material({"q": {"a": 1}}, {"a": " ", "b": ""})).verdict == "sound"


def test_pairs_that_were_not_compared_need_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_copies, "MAX_CANDIDATES", 3)
    corpus = {"a": TEXT} | {f"b{number}": f"{TEXT} {number}" for number in range(9)}
    finding = unlabelled_copies(material({"q": {"a": 1}}, corpus))
    assert finding.numbers["pairs_not_compared"] > 0 and "were not compared" in finding.sentence


@pytest.mark.parametrize(
    ("copy", "kind"), [(HALF, "half"), (f"{text(90)} {TEXT} {text(90)}", "contained"), (TEXT, ""), (text(), "")]
)
def test_a_part_of_a_relevant_document_needs_a_look(copy: str, kind: str) -> None:
    finding = partial_copies(material({"q": {"a": 1}}, {"a": TEXT, "b": copy}))
    assert finding.verdict == ("look" if kind else "sound")
    assert [row[:4] for table in finding.evidence for row in table.rows] == ([("q", "a", "b", kind)] if kind else [])


def test_an_excluded_or_labelled_document_may_share_text() -> None:
    queries = Query("p", text(20)), Query("q", text(20), excluded=("half",))
    qrels = {"p": {"a": 1, "half": 0}, "q": {"a": 1}}
    assert partial_copies(material(qrels, {"a": TEXT, "half": HALF}, *queries)).verdict == "sound"


@pytest.mark.parametrize(
    ("first", "second", "verdict", "opposed"),
    [(1, 0, "broken", 1), (2, 1, "look", 0), (1, 1, "sound", 0), (0, -1, "look", 0)],
)
def test_equal_texts_need_equal_labels(first: int, second: int, verdict: str, opposed: int) -> None:
    finding = contradictory_labels(material({"q": {"a": first, "b": second}}, {"a": TEXT, "b": TEXT.title()}))
    assert (finding.verdict, finding.numbers["opposed_queries"]) == (verdict, opposed)


def test_labels_of_different_queries_and_of_missing_or_empty_documents_do_not_contradict() -> None:
    qrels = {"p": {"a": 1, "gone": 1, "x": 1, "y": 0}, "q": {"b": 0, "lost": 0}}
    assert contradictory_labels(material(qrels, {"a": TEXT, "b": TEXT, "x": "", "y": " "})).verdict == "sound"


@pytest.mark.parametrize(
    ("again", "relevant", "numbers", "verdict"),
    [
        ("WHY  does it hurt?", "a", (1, 0, 0), "look"),
        ("why does it hurt?", "b", (1, 0, 2), "broken"),
        ("why dоes it hurt?", "a", (1, 0, 0), "look"),  # a Cyrillic letter
        ("when does it not hurt?", "b", (0, 0, 0), "sound"),
        (" ", "b", (0, 0, 0), "sound"),
    ],
)
def test_repeated_queries_are_worse_with_other_labels(
    again: str, relevant: str, numbers: tuple[int, int, int], verdict: str
) -> None:
    queries = Query("p", "Why does it hurt?"), Query("q", again)
    finding = repeated_queries(material({"p": {"a": 1}, "q": {relevant: 1}}, {"a": "x", "b": "y"}, *queries))
    assert (finding.verdict, tuple(finding.numbers.values())) == (verdict, numbers)


def test_nearly_repeated_queries_are_listed_once_for_each_pair() -> None:
    asked = text(30)
    queries = [Query("p", asked), Query("q", f"{asked} please"), Query("r", asked.upper()), Query("s", f"{asked} now")]
    finding = repeated_queries(material({query.id: {"a": 1} for query in queries}, {"a": "x"}, *queries))
    assert finding.numbers["repeated"] == 1
    assert {row[:2] for row in finding.evidence[0].rows} == {("r", "p"), ("q", "p"), ("s", "p"), ("s", "q")}
