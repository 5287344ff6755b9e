"""The ranks of relevant documents, with the judgements at hand and without."""

from __future__ import annotations

from pathlib import Path

from r2med.data import load
from r2med.data.runs import Run
from r2med.evaluation.records.collection import collect
from r2med.publication.site.site import gold_value


def test_ranks_are_those_of_the_run_files(records: Path) -> None:
    collection = collect([records])
    qrels = load("demo/Biology").qrels
    value = gold_value(collection, "demo/Biology", qrels)
    kept = collection.cell("bm25", "demo/Biology")
    assert kept is not None and kept.run_file is not None
    run = Run.read(kept.run_file, encoded=True)
    ranking = dict(zip(run.queries, run.id_lists(), strict=True))
    number = collection.systems.index("bm25")
    for query, gold, grades, ranks in zip(
        value["queries"], value["gold"], value["grades"], value["ranks"][number], strict=True
    ):
        assert dict(zip(gold, grades, strict=True)) == {d: grade for d, grade in qrels[query].items() if grade > 0}
        assert ranks == [ranking[query].index(d) + 1 if d in ranking[query] else 0 for d in gold]


def test_without_judgements_what_nobody_retrieved_still_counts(records: Path) -> None:
    collection = collect([records])
    known = gold_value(collection, "demo/Biology", load("demo/Biology").qrels)
    guessed = gold_value(collection, "demo/Biology", None)
    assert list(map(len, guessed["gold"])) == list(map(len, known["gold"]))
    for a, b in zip(guessed["ranks"], known["ranks"], strict=True):
        assert (a is None) == (b is None)
        assert a is None or [sorted(ranks) for ranks in a] == [sorted(ranks) for ranks in b]
