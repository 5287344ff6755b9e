"""Scoring against pytrec_eval: 5,000 queries × 1,000 documents, all measures, from query id -> document id -> score.

    python benchmarks/score.py

pytrec_eval (`pip install pytrec_eval-terrier`) has wheels for x86_64 only; where it is missing it is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CORPUS, JUDGED = 200_000, 20


def make(queries: int, documents: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return made-up qrels and a run: every fiftieth document is judged, and one that was not found."""
    rng = np.random.default_rng(3)
    ids = np.array([f"doc{number}" for number in range(CORPUS)], dtype=object)
    run, qrels = {}, {}
    for query in range(queries):
        found = ids[(rng.integers(0, CORPUS) + np.arange(documents) * 197) % CORPUS].tolist()
        run[f"q{query}"] = dict(zip(found, rng.random(documents).tolist(), strict=True))
        grades = rng.integers(0, 3, JUDGED).tolist()
        qrels[f"q{query}"] = dict(zip(found[:: documents // JUDGED], grades, strict=False)) | {"missed": 1}
    return qrels, run


def ours(qrels: Any, run: Any) -> Callable[[], dict[str, list[float]]]:
    from r2med import score

    def work() -> dict[str, list[float]]:
        return {str(measure): values.tolist() for measure, values in score(qrels, run).values.items()}

    return work


def ours_as_arrays(qrels: Any, run: Any) -> Callable[[], dict[str, list[float]]]:
    from r2med.data.runs.run import Run

    return ours(qrels, Run.of(run))


def peer(qrels: Any, run: Any) -> Callable[[], dict[str, list[float]]]:
    import pytrec_eval

    from r2med.evaluation.measure.measures import CUTOFFS

    cutoffs = ",".join(map(str, CUTOFFS))
    names = {"nDCG": "ndcg_cut", "MAP": "map_cut", "R": "recall", "P": "P"}

    def work() -> dict[str, list[float]]:
        measures = {*(f"{name}.{cutoffs}" for name in names.values()), "recip_rank"}
        lines = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
        theirs = {f"{ours}@{at}": f"{name}_{at}" for ours, name in names.items() for at in CUTOFFS}
        return {m: [lines[query][name] for query in qrels] for m, name in {**theirs, "MRR": "recip_rank"}.items()}

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best counts")
    args = parser.parse_args()
    qrels, run = make(args.queries, args.documents)
    results: dict[str, dict[str, list[float]]] = {}
    for name, start in {"pytrec_eval": peer, "r2med": ours, "r2med, a Run": ours_as_arrays}.items():
        try:
            work = start(qrels, run)
        except ImportError as error:
            print(f"{name}: left out ({error})")
            continue
        times = []
        for _ in range(args.repeat):
            clock, cpu = time.perf_counter(), time.process_time()
            results[name] = work()
            times.append((time.perf_counter() - clock, time.process_time() - cpu))
        print(f"{name}: {min(times)[0]:.2f} s, {min(cpu for _, cpu in times):.2f} s of cores", flush=True)
    reference = results.get("pytrec_eval", results["r2med"])
    worst = max(
        abs(a - b)
        for result in results.values()
        for m, line in result.items()
        for a, b in zip(line, reference[m], strict=True)
    )
    print(f"largest difference between them: {worst:.1e}")


if __name__ == "__main__":
    main()
