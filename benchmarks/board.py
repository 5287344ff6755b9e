"""Reading, comparing and reporting the records of many systems at the size of the benchmark: seconds and peak memory.

    python benchmarks/board.py                    # 100 systems × 8 datasets, 876 queries, 10,000 resamples
    python benchmarks/board.py --systems 20

The records are made up, but as large as real ones: every measure of every query, the ranks of relevant documents.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from r2med import compare
from r2med.data.dataset_cards import cards, groups
from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.measure import DEFAULT_MEASURES
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import DatasetFacts, QueryFacts, StageFacts
from r2med.foundation.core.cost import Cost

BODY_SYSTEMS = ("Cardiovascular", "Digestive", "Endocrine", "Nervous", "Respiratory", "Skeletal", "Urinary")


def write_records(systems: int, out: Path) -> None:
    random = np.random.default_rng(0)
    for name in groups()["R2MED"]:
        card = cards()[name]
        assert card.counts is not None
        hardness = random.normal(0.3, 0.25, card.counts.queries)
        for number in range(systems):
            values = np.clip(hardness + 0.002 * number + random.normal(0, 0.15, len(hardness)), 0, 1)
            record = made_up(f"system-{number:03}(setting={number}) → bm25", name, values, random)
            record.write(out / name / f"system-{number:03}-{number:010x}.json")


def made_up(system: str, dataset: str, values: Any, random: np.random.Generator) -> Record:
    card = cards()[dataset]
    assert card.counts is not None
    queries = [f"q_PMC{number:08}" for number in range(len(values))]
    mean = float(values.mean())
    return Record(
        key="0" * 32,
        system=system,
        settings={"k": 1000},
        dataset=DatasetFacts(
            name=dataset,
            fingerprint=dataset,
            corpus_fingerprint=dataset,
            queries=len(queries),
            documents=card.counts.documents,
            judged_queries=len(queries),
            task=card.task,
            scenario=card.scenario,
        ),
        mean={str(measure): mean for measure in DEFAULT_MEASURES},
        per_query={q: {str(m): float(v) for m in DEFAULT_MEASURES} for q, v in zip(queries, values, strict=True)},
        queries={
            q: QueryFacts(words=50 + n, positives=1 + n % 6, body_system=BODY_SYSTEMS[n % len(BODY_SYSTEMS)])
            for n, q in enumerate(queries)
        },
        stages=(
            StageFacts(
                stage="retrieve",
                name=system,
                cost=Cost(seconds=float(random.lognormal(1, 2)), dollars=float(random.lognormal(-3, 1))),
                gold={q: {f"d{n}": int(n) for n in random.integers(1, 1000, 3)} for q in queries},
            ),
        ),
        versions={},
        source="0" * 16,
        created="2026-01-01T00:00:00+00:00",
    )


def timed(label: str, work: Callable[[], Any]) -> Any:
    start, cpu = time.perf_counter(), time.process_time()
    outcome = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.perf_counter() - start
    print(f"{label:44} {seconds:7.1f} s, {time.process_time() - cpu:7.1f} s of cores, peak {peak:6,.0f} MiB")
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        timed(f"{given.systems} systems × 8 datasets written", lambda: write_records(given.systems, results))
        collection = timed("read and checked", lambda: collect([results]))
        compared = timed("all pairs compared", lambda: comparison(collection))
        timed("one baseline, slices by body system", lambda: _sliced(collection))
        timed("as JSON", compared.as_json)
        timed(
            "compare --out: read, compared, tables and a figure",
            lambda: compare(results=results, out=results / "report"),
        )


def _sliced(collection: Any) -> Any:
    return comparison(collection, baseline=collection.systems[0], slice_by=["body-system"])


if __name__ == "__main__":
    main()
