"""Queries that give away what they ask for, and the fields of a query file that name it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med import Dataset, Query, load
from r2med.assessment.audit.answer_leaks import (
    answers_in_metadata,
    answers_in_queries,
    is_open_answer,
    lists_options,
    longest_run,
    quoted_documents,
)
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.query_metadata import query_lines, query_metadata
from r2med.data.corpus import Corpus
from r2med.data.dataset import Qrels
from support.datasets import r2med_folder

PASSAGE = "Ring shaped plaques on the backs of the hands that fade without any scar suggest granuloma annulare."


def material(*queries: Query) -> AuditMaterial:
    qrels = Qrels({query.id: {"d": 1} for query in queries})
    return AuditMaterial("m", qrels, Dataset("m", queries, Corpus.of([("d", PASSAGE)]), qrels))


@pytest.mark.parametrize(
    ("text", "answer", "named"),
    [
        ("Is it granuloma annulare?", "Granuloma annulare", True),
        ("Are these granulomas annulare?", "granuloma annulare", True),
        ("GRANULOMA-ANNULARE", "granuloma annulare", True),
        ("Is it a granuloma?", "granuloma annulare", False),
        ("Yes or no?", "yes", False),
        ("Is it B?", "B", False),
        ("", "granuloma annulare", False),
    ],
)
def test_an_answer_in_a_query_is_found_in_any_form_of_its_words(text: str, answer: str, named: bool) -> None:
    finding = answers_in_queries(material(Query("q", text, answer)))
    assert (finding.verdict == "broken") == named == bool(finding.evidence)


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        (("ringworm", "lichen planus"), True),
        (("ringworm", "lichen"), True),
        (("ringworm", "eczema"), False),
        ((), False),
    ],
)
def test_a_query_lists_its_options_only_if_it_names_all(options: tuple[str, ...], listed: bool) -> None:
    assert lists_options(Query("q", "Ringworm or lichen planus?", options=options)) == listed


@pytest.mark.parametrize("answer", ["Type 1 diabetes", "sepsis", "vitamin B12"])
def test_an_answer_of_words_is_open(answer: str) -> None:
    assert is_open_answer(answer)


@pytest.mark.parametrize(("first", "last", "quoted"), [(0, 12, 12), (2, 17, 15), (0, 11, 0)])
def test_twelve_words_in_a_row_are_a_quotation(first: int, last: int, quoted: int) -> None:
    text = " ".join(PASSAGE.upper().split()[first:last])
    finding = quoted_documents(material(Query("q", f"Why {text}, please?")))
    assert finding.numbers["longest"] == quoted
    assert finding.verdict == ("broken" if quoted else "sound")


@pytest.mark.parametrize(
    ("query", "document", "run"),
    [
        ("a b c d", "x b c y", "b c"),
        ("a b", "b a", ""),
        ("a b a b", "a b a b", "a b a b"),
        ("", "a b", ""),
        ("a", "a", ""),
    ],
)
def test_the_longest_run_has_at_least_this_number_of_words(query: str, document: str, run: str) -> None:
    assert list(longest_run(query.split(), document.split(), 2)) == run.split()


def written(folder: Path, **fields: object) -> Dataset:
    rows = [{"id": "0", "text": "what?", "answer": "granuloma annulare", **fields}, {"id": "1", "text": "why?"}]
    documents = [{"id": "doc-17", "text": PASSAGE}, {"id": "d2", "text": "else"}]
    labels = [{"q_id": "0", "p_id": "doc-17", "score": 1}, {"q_id": "1", "p_id": "d2", "score": 1}]
    return load(r2med_folder(folder / "mine", documents, rows, labels))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"topic": "granuloma_annulare"}, ("topic", "granuloma annulare", "answer")),
        ({"links": [{"page": "doc-17"}]}, ("links", "doc-17", "relevant document")),
        ({"note": "see doc-17, please"}, ("note", "doc-17", "relevant document")),
        ({"options": ["granuloma annulare", "ringworm"]}, None),
        ({"note": "see doc-178"}, None),
        ({"note": None, "size": 3}, None),
        ({}, None),
    ],
)
def test_a_field_that_names_the_answer_or_a_relevant_document_needs_a_look(
    tmp_path: Path, fields: dict[str, object], named: tuple[str, str, str] | None
) -> None:
    dataset = written(tmp_path, **fields)
    finding = answers_in_metadata(AuditMaterial("mine", dataset.qrels, dataset))
    assert finding.verdict == ("look" if named else "sound")
    assert [row[1:] for table in finding.evidence for row in table.rows] == ([named] if named else [])


def test_the_other_fields_of_a_query_are_flat_texts(tmp_path: Path) -> None:
    dataset = written(tmp_path, links=[{"page": 3, "seen": None}, "x"], empty="")
    assert query_metadata(dataset) == {"0": {"id": "0", "links": "page 3 seen  x"}, "1": {"id": "1"}}


def test_values_in_memory_have_no_other_fields() -> None:
    dataset = material(Query("q", "what?")).dataset
    assert dataset and query_lines(dataset) is None and query_metadata(dataset) == {}


def test_long_evidence_is_cut() -> None:
    answer = "granuloma annulare " * 20
    finding = answers_in_queries(material(Query("q", answer, answer)))
    assert len(json.dumps(finding.evidence[0].rows[0][1], ensure_ascii=False)) == 82
