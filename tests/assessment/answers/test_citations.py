"""Citations of an answer: which passages a sentence cites, and which numbers name none."""

from __future__ import annotations

import pytest

from r2med.assessment.answers.citations import cited_sentences, without_citations

READ = ["d1", "d2", "d3", "d4", "d5"]


def cited(answer: str) -> list[tuple[tuple[str, ...], int]]:
    return [(each.documents, each.unknown) for each in cited_sentences(answer, READ)]


@pytest.mark.parametrize(
    "mark", ["[1, 3]", "[1][3]", "[1; 3]", "[1] [3]", "[passages 1, 3]", "【1】【3】", "[3, 1, 3]"]
)
def test_several_numbers_are_several_passages_and_each_counts_once(mark: str) -> None:
    ((documents, unknown),) = cited(f"Urate falls out {mark}.")
    assert (set(documents), len(documents), unknown) == ({"d1", "d3"}, 2, 0)


@pytest.mark.parametrize(("mark", "documents"), [("[2-4]", ("d2", "d3", "d4")), ("[4–5]", ("d4", "d5"))])
def test_a_range_is_every_passage_in_it(mark: str, documents: tuple[str, ...]) -> None:
    assert cited(f"Urate falls out {mark}.") == [(documents, 0)]


@pytest.mark.parametrize("mark", ["[0]", "[6]", "[9]"])
def test_a_passage_that_does_not_exist_names_no_document_and_is_counted(mark: str) -> None:
    assert cited(f"Urate falls out {mark}.") == [((), 1)]


def test_an_endless_range_does_not_cite_every_passage_without_being_counted() -> None:
    ((documents, unknown),) = cited("Urate falls out [1-9999].")
    assert unknown >= 1 and len(documents) <= len(READ)


def test_a_citation_behind_the_stop_belongs_to_the_sentence_before_it() -> None:
    assert cited("Urate falls out. [1] It hurts. [2]") == [(("d1",), 0), (("d2",), 0)]


def test_a_sentence_without_a_citation_has_none_of_its_neighbours() -> None:
    assert cited("Urate falls out [1]. It hurts. Rest helps [2].") == [(("d1",), 0), ((), 0), (("d2",), 0)]


def test_brackets_that_hold_no_numbers_are_text() -> None:
    (sentence,) = cited_sentences("Urate [sic] falls out at [pH 7.4].", READ)
    assert (sentence.documents, sentence.unknown) == ((), 0)
    assert "[sic]" in sentence.text


def test_marks_are_removed_from_a_text_and_nothing_else() -> None:
    assert without_citations("Urate falls out [1], and hurts [2, 3].") == "Urate falls out, and hurts."
    assert without_citations("An array a[i] of 3 values") == "An array a[i] of 3 values"


def test_without_passages_every_citation_is_unknown() -> None:
    assert [each.unknown for each in cited_sentences("Urate falls out [1].", [])] == [1]
