"""Labels that look turned are noticed, and right labels are not."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from r2med import Dataset, Query, audit, load
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.turned_labels import turned_labels
from r2med.data.corpus import Corpus
from r2med.data.dataset import Qrels
from r2med.foundation.pages.finding import Finding

DEMO = (
    "Biology",
    "Bioinformatics",
    "IIYi-Clinical",
    "MedQA-Diag",
    "MedXpertQA-Exam",
    "Medical-Sciences",
    "PMC-Clinical",
    "PMC-Treatment",
)
Grades = Mapping[str, Mapping[str, int]]


def pooled(dataset: Dataset, size: int) -> dict[str, dict[str, int]]:
    """Return the labels with some other documents of the corpus as irrelevant ones."""
    ids, chance = dataset.corpus.ids(range(len(dataset.corpus))), random.Random(5)
    return {query: {**dict.fromkeys(chance.sample(ids, size), 0), **grades} for query, grades in dataset.qrels.items()}


def turned(qrels: Grades) -> dict[str, dict[str, int]]:
    return {query: {document: int(grade <= 0) for document, grade in each.items()} for query, each in qrels.items()}


def found(dataset: Dataset, qrels: Grades) -> Finding:
    return turned_labels(AuditMaterial(dataset.name, Qrels(qrels), dataset))


@pytest.mark.parametrize("name", DEMO)
@pytest.mark.parametrize("size", [3, 10, 30])
def test_turned_labels_of_the_demo_need_a_look_and_right_ones_do_not(name: str, size: int) -> None:
    dataset = load(f"demo/{name}")
    right = pooled(dataset, size)
    assert found(dataset, right).verdict == "sound"
    finding = found(dataset, turned(right))
    assert finding.verdict == "look"
    assert finding.evidence[0].columns[0] == "query" and len(finding.evidence[0].rows) == 8
    assert finding.numbers["in_order"] < 0.5


@pytest.mark.parametrize("name", DEMO)
def test_relevant_documents_alone_cannot_be_turned_unless_they_are_most_of_the_corpus(name: str) -> None:
    dataset = load(f"demo/{name}")
    assert found(dataset, dataset.qrels).verdict == "sound"
    ids = dataset.corpus.ids(range(len(dataset.corpus)))
    others = {query: {each: 1 for each in ids if each not in grades} for query, grades in dataset.qrels.items()}
    finding = found(dataset, others)
    assert finding.verdict == "look" and "unusually many" in finding.sentence


WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def made(shared: Callable[[int], int], answers: bool = False, queries: int = 12, size: int = 6) -> Dataset:
    """Return queries with `size` documents each; document n shares `shared(n)` words with its query or answer."""
    chance = random.Random(2)
    asked, corpus, qrels = [], {}, {}
    for number in range(queries):
        words = [f"q{number}x{place}" for place in range(10)]
        asked.append(
            Query(f"q{number}", " ".join(words if not answers else ["what"]), " ".join(words) if answers else "")
        )
        qrels[f"q{number}"] = {f"d{number}-{place}": place for place in range(size)}
        for place in range(size):
            corpus[f"d{number}-{place}"] = " ".join(words[: shared(place)] + chance.choices(WORDS, k=30))
    return Dataset("made", asked, Corpus.of(corpus.items()), Qrels(qrels))


@pytest.mark.parametrize("answers", [True, False])
def test_ranks_in_place_of_grades_are_noticed(answers: bool) -> None:
    """Grade 1 is then the best document and grade 5 the worst."""
    assert found(made(lambda grade: 2 * grade, answers), made(lambda grade: grade).qrels).verdict == "sound"
    reverse = made(lambda grade: 10 - 2 * grade, answers)
    finding = found(reverse, reverse.qrels)
    assert finding.verdict == "look"
    assert ("share more words with the answer" if answers else "share more words with the query") in finding.sentence
    assert finding.numbers["in_order"] == 0


def test_without_answers_irrelevant_documents_may_share_more_words() -> None:
    dataset = made(lambda place: 10 - 2 * place)
    few = {
        query: {document: int(place == 5) for document, place in each.items()} for query, each in dataset.qrels.items()
    }
    assert found(dataset, few).verdict == "sound"
    assert found(dataset, few).numbers["in_order"] == 0


@pytest.mark.parametrize(("relevant", "verdict"), [(30, "look"), (5, "sound")])
def test_a_pool_that_is_nearly_all_relevant_needs_a_look(relevant: int, verdict: str) -> None:
    dataset = made(lambda place: 1, size=32)
    pool = {
        query: {each: int(n < relevant) for n, each in enumerate(grades)} for query, grades in dataset.qrels.items()
    }
    assert found(dataset, pool).verdict == verdict


def test_all_documents_of_a_tiny_corpus_may_be_relevant() -> None:
    dataset = made(lambda place: 1, queries=1, size=3)
    assert found(dataset, {"q0": dict.fromkeys(dataset.qrels["q0"], 1)}).verdict == "sound"


def test_few_queries_say_nothing() -> None:
    dataset = made(lambda grade: 10 - 2 * grade, queries=4)
    assert found(dataset, dataset.qrels).verdict == "sound"


def test_documents_and_queries_that_are_missing_or_empty_are_no_trouble() -> None:
    dataset = made(lambda grade: grade)
    qrels = {**dataset.qrels, "ghost": {"d0-0": 0, "d0-1": 1}, "q1": {"nowhere": 1, "d1-0": 0}, "q2": {}}
    assert found(dataset, qrels).numbers["queries"] == 10
    empty = replace(dataset, corpus=Corpus.of((each, "") for each in dataset.corpus.ids(range(len(dataset.corpus)))))
    assert found(empty, dataset.qrels).numbers["in_order"] == 0.5
    assert found(dataset, {}).sentence == "No query has documents of two grades to compare."


def test_the_audit_shows_the_finding() -> None:
    dataset = made(lambda grade: 10 - 2 * grade, answers=True)
    finding = next(each for each in audit(dataset).findings if each.id == "turned-labels")
    assert (finding.verdict, finding.title) == ("look", "Order of grades")
