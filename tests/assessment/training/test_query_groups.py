"""Groups of queries that share something, and folds that no group crosses."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from r2med import Dataset, Query, UserError
from r2med.assessment.training.query_groups import query_groups
from r2med.data import load
from r2med.data.fold_file import Folds
from r2med.foundation.text.synonyms import Synonyms
from support.datasets import write_jsonl
from support.facts import states

CHANCE = random.Random(5)
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def text(count: int = 60) -> str:
    return " ".join(CHANCE.choices(WORDS, k=count))


def made(queries: list[Query], qrels: dict[str, dict[str, int]], **documents: str) -> Dataset:
    named = {document for judged in qrels.values() for document in judged}
    return Dataset.of(queries, {name: text() for name in sorted(named)} | documents, qrels, "mine")


def asked(*ids: str, answers: tuple[str, ...] = ()) -> list[Query]:
    return [Query(name, text(20), *answers[place : place + 1]) for place, name in enumerate(ids)]


def grouped(dataset: Dataset, synonyms: Synonyms | None = None) -> set[tuple[str, ...]]:
    return set(query_groups(dataset, synonyms).groups)


def test_queries_with_a_common_relevant_document_are_one_group_also_through_a_third() -> None:
    qrels = {"a": {"1": 1}, "b": {"1": 1, "2": 1}, "c": {"2": 1}, "d": {"3": 1, "1": 0}}
    groups = query_groups(made(asked(*qrels), qrels))
    assert groups.groups == (("a", "b", "c"), ("d",))
    assert groups.linked == {
        "diagnosis": 0,
        "source page": 0,
        "relevant document": 3,
        "question": 0,
        "reasoning text": 0,
    }


def test_queries_whose_relevant_documents_are_near_copies_are_one_group() -> None:
    passage = text()
    dataset = made(asked("a", "b"), {"a": {"1": 1}, "b": {"2": 1}}, **{"1": passage, "2": f"{passage} etc"})
    assert grouped(dataset) == {("a", "b")}


def test_queries_with_nearly_the_same_text_are_one_group() -> None:
    question = text(30)
    queries = [Query("a", question), Query("b", f"{question} indeed"), Query("c", text(30))]
    assert grouped(made(queries, {"a": {"1": 1}, "b": {"2": 1}, "c": {"3": 1}})) == {("a", "b"), ("c",)}


@pytest.mark.parametrize("change", ["run", "html", "question"])
def test_what_an_audit_would_find_in_the_rows_of_another_query_puts_both_into_one_group(change: str) -> None:
    passage = text()
    queries = asked("a", "b")
    if change == "question":
        queries[1] = Query("b", passage)
    other = {
        "run": f"{text()} {' '.join(passage.split()[:14])}",
        "html": " ".join(f"<b>{w}</b>" for w in passage.split()),
    }
    dataset = made(queries, {"a": {"1": 1}, "b": {"2": 1}}, **{"1": passage, "2": other.get(change, text())})
    assert grouped(dataset) == {("a", "b")}


@pytest.mark.parametrize(
    ("answers", "together"),
    [
        (("Gout", "gouts"), True),
        (("Gout", "Podagra"), True),
        (("Gout, acute", "acute gout"), True),
        (("Kawa\u00adsaki disease", "Kawasaki disease"), True),
        (("Gout", "Scurvy"), False),
        (("yes", "yes"), False),
        (("", ""), False),
    ],
)
def test_queries_with_one_diagnosis_by_spelling_or_synonyms_are_one_group(
    answers: tuple[str, str], together: bool
) -> None:
    dataset = made(asked("a", "b", answers=answers), {"a": {"1": 1}, "b": {"2": 1}})
    assert (grouped(dataset, Synonyms([("Gout", "Podagra")])) == {("a", "b")}) is together


def test_queries_of_one_source_page_are_one_group(tmp_path: Path) -> None:
    rows = [{"id": name, "text": text(20), "source": source} for name, source in SOURCES.items()]
    write_jsonl(tmp_path / "own" / "query.jsonl", rows)
    write_jsonl(tmp_path / "own" / "corpus.jsonl", [{"id": name, "text": text()} for name in "1234567"])
    qrels = [
        {"q_id": query, "p_id": document, "score": 1} for query, document in zip("abcdefg", "1234567", strict=True)
    ]
    write_jsonl(tmp_path / "own" / "qrels.jsonl", qrels)
    pages = [{"id": "6", "page": "p"}, {"id": "7", "page": "p"}]
    write_jsonl(tmp_path / "own" / "provenance.jsonl", pages)
    assert grouped(load(str(tmp_path / "own"))) == {("a", "b"), ("c", "d"), ("e",), ("f", "g")}


SOURCES = {
    "a": "https://x.org/1", "b": "http://www.X.org/1/#top", "c": "cases.csv:4", "d": "cases.csv:4", "e": "PubMed",
    "f": "PubMed", "g": "PubMed",
}  # fmt: skip


def test_reasoning_is_kept_with_its_copies_and_with_the_texts_that_it_holds(tmp_path: Path) -> None:
    documents, path, phrase = {name: text() for name in "123456"}, text(30), text(15)
    reasoning = {"a": path, "b": f" {path.upper()}.", "c": text(5), "d": f"So {documents['3']}"}
    reasoning |= {"e": f"{phrase} {text(30)}", "f": f"{phrase} {text(30)}"}
    write_jsonl(
        tmp_path / "own" / "query.jsonl", [{"id": n, "text": text(20), "reasoning": r} for n, r in reasoning.items()]
    )
    write_jsonl(tmp_path / "own" / "corpus.jsonl", [{"id": name, "text": each} for name, each in documents.items()])
    qrels = [{"q_id": query, "p_id": each, "score": 1} for query, each in zip(reasoning, documents, strict=True)]
    write_jsonl(tmp_path / "own" / "qrels.jsonl", qrels)
    groups = query_groups(load(str(tmp_path / "own")))
    assert set(groups.groups) == {("a", "b"), ("c", "d"), ("e",), ("f",)}
    assert (groups.linked["reasoning text"], groups.linked["relevant document"]) == (3, 1)


def many(groups: list[int]) -> Dataset:
    qrels = {f"{number}-{each}": {str(number): 1} for number, size in enumerate(groups) for each in range(size)}
    return made(asked(*qrels), qrels)


def test_folds_are_balanced_and_no_group_is_in_two() -> None:
    groups = query_groups(many([12, 7, *[3] * 5, *[1] * 66]))
    folds = groups.folds(5)
    assert sorted(Counter(row.fold for row in folds.of_query.values()).values()) == [20] * 5
    assert all(len({folds.of_query[query].fold for query in group}) == 1 for group in groups.groups)


def test_the_folds_follow_from_the_data_alone_and_survive_their_file(tmp_path: Path) -> None:
    dataset = many([3, 2, 1, 1, 1, 1])
    folds = query_groups(dataset).folds(3)
    folds.write(tmp_path / "folds.jsonl")
    assert Folds.read(tmp_path / "folds.jsonl").of_query == folds.of_query == query_groups(dataset).folds(3).of_query


def test_a_group_with_more_than_half_of_the_queries_is_refused_with_its_size() -> None:
    with pytest.raises(UserError) as refused:
        query_groups(many([6, 1, 1, 1, 1])).folds(2)
    states(refused.value, "6 of 10", "60%", "relevant document")


def test_fewer_groups_than_folds_are_refused() -> None:
    with pytest.raises(UserError) as refused:
        query_groups(many([2, 2, 2])).folds(4)
    states(refused.value, "3 groups", "4 folds")
