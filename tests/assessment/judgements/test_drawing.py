"""What people are asked to label: the pools of random queries, and labels that could change the order of systems."""

from __future__ import annotations

import random
from itertools import combinations
from math import sqrt
from statistics import NormalDist, fmean, variance

import pytest

from r2med import Dataset, run
from r2med.assessment.judgements.drawing import drawn_pairs, influence, random_queries
from r2med.data.dataset import Query
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.relabelled import relabelled
from r2med.evaluation.records.stored_records import RecordCollection

WORDS = "liver heart kidney lung spleen brain skin bone eye ear".split()


def made(name: str, queries: int, highest: int) -> Dataset:
    chance = random.Random(name)
    corpus = {f"d{n}": " ".join(chance.choices(WORDS, k=chance.randint(4, 30))) for n in range(60)}
    asked = [Query(f"q{n}", " ".join(chance.sample(WORDS, 3))) for n in range(queries)]
    qrels = {query.id: {d: chance.randint(0, highest) for d in chance.sample(list(corpus), 6)} for query in asked}
    return Dataset.of(asked, corpus, qrels, name=name)


@pytest.fixture(scope="module")
def datasets() -> dict[str, Dataset]:
    return {"one": made("one", 12, 1), "two": made("two", 7, 2)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, datasets: dict[str, Dataset]) -> RecordCollection:
    folder = tmp_path_factory.mktemp("results")
    for dataset in datasets.values():
        run(["bm25", "bm25(b=0)", "bm25(k1=0.1)"], dataset, out=folder)
    return collect(results=folder)


@pytest.fixture(scope="module")
def overlay(datasets: dict[str, Dataset]) -> Overlay:
    chance = random.Random(3)
    labels = [
        OverlayLabel(dataset=name, query=query.id, document=document, grade=chance.randint(0, 1), judge="j")
        for name, dataset in datasets.items()
        for query in dataset.queries[:5]
        for document in chance.sample([f"d{n}" for n in range(60)], 4)
    ]
    return Overlay("judged", tuple(labels))


def score_of(collection: RecordCollection, system: str) -> dict[str, dict[str, float]]:
    records = [kept.record for kept in collection if kept.record.system == system]
    return {
        record.dataset.name: {query: values["nDCG@10"] for query, values in record.per_query.items()}
        for record in records
    }


def test_the_influence_equals_a_computation_from_scratch(
    results: RecordCollection, datasets: dict[str, Dataset], overlay: Overlay
) -> None:
    found = influence(overlay, results, datasets)
    assert len(found) == 40
    assert sum(value > 0 for value in found.values()) > 10
    before = relabelled(results, [overlay], datasets)
    base = {system: score_of(before, system) for system in results.systems}

    def mean(values: dict[str, dict[str, float]]) -> float:
        return fmean(fmean(each.values()) for each in values.values())

    for pair in sorted(found, key=lambda each: -found[each])[:3] + sorted(found)[:3]:
        dataset, query, document = pair
        grade = next(label.grade for label in overlay.labels if (label.dataset, label.query, label.document) == pair)
        turned = 0 if grade else {"one": 1, "two": 2}[dataset]
        label = OverlayLabel(dataset=dataset, query=query, document=document, grade=turned, reviewer="R")
        after = relabelled(results, [Overlay("judged", (*overlay.labels, label))], datasets)
        total = 0.0
        for a, b in combinations(results.systems, 2):
            spread = sum(
                variance([base[a][name][q] - base[b][name][q] for q in base[a][name]]) / len(base[a][name])
                for name in base[a]
            )
            error = sqrt(spread) / 2
            gap, new = (mean(x) - mean(y) for x, y in ((base[a], base[b]), (score_of(after, a), score_of(after, b))))
            total += abs(NormalDist().cdf(new / error) - NormalDist().cdf(gap / error))
        assert found[pair] == pytest.approx(total, abs=1e-9)


def test_random_queries_come_first_with_their_whole_pool_and_a_larger_sample_contains_a_smaller(
    results: RecordCollection, datasets: dict[str, Dataset], overlay: Overlay
) -> None:
    small = drawn_pairs(overlay, results, datasets, 2, 0)
    assert [each.drawn for each in small] == ["random"] * 16
    order = random_queries(overlay, "one")
    assert sorted(order) == ["q0", "q1", "q2", "q3", "q4"] != order
    assert list(dict.fromkeys(each.query for each in small if each.dataset == "one")) == order[:2]
    pool = {label.document for label in overlay.labels if (label.dataset, label.query) == ("one", order[0])}
    assert {each.document for each in small[:4]} == pool
    assert set(small) <= set(drawn_pairs(overlay, results, datasets, 3, 0))


def test_influential_documents_are_those_outside_of_the_random_part(
    results: RecordCollection, datasets: dict[str, Dataset], overlay: Overlay
) -> None:
    found = drawn_pairs(overlay, results, datasets, 1, 5)
    asked = [(each.dataset, each.query, each.document) for each in found]
    assert len(set(asked)) == len(asked) == 8 + 5
    ranked = influence(overlay, results, datasets)
    least = min(ranked[pair] for pair in asked[8:])
    assert all(ranked[pair] <= least for pair in ranked if pair not in asked)


def test_labels_of_a_single_system_have_no_influence(results: RecordCollection, datasets: dict[str, Dataset]) -> None:
    label = OverlayLabel(dataset="one", query="q0", document="d1", grade=1, judge="j")
    alone = RecordCollection({key: kept for key, kept in results.cells.items() if key[0] == "bm25"})
    assert influence(Overlay("m", (label,)), alone, datasets) == {}
