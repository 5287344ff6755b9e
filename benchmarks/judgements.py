"""Coverage and width of scores that an LLM judge's labels give after people corrected them, by simulation.

    python benchmarks/judgements.py FOLDER [--draws 1000]

FOLDER is a labelled dataset, such as SciFact. Its labels are taken as the truth, and unlisted documents as irrelevant.
In each draw queries are drawn from those of the dataset, with replacement, and a share of the relevant labels is
hidden. A scripted judge of known error rates labels the pool of the systems, and people label the whole pool of a
random sample of queries. The truth is the mean nDCG@10 over all queries of the dataset with every label of the pool.
Each line shows how often the 95 % interval holds the truth, and its width against the interval from people's labels
alone: for the score of one system, and for the difference of two. Seeds are fixed.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from r2med import score
from r2med.data import load
from r2med.evaluation.comparison.corrected_means import CorrectedMean, ReviewedQueries, corrected_mean
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.runtime.setup import Setup
from r2med.systems.system import System

SYSTEMS = ("bm25", "bm25(k1=0.1, b=0)", "bm25(k1=5, b=1)")
JUDGES = {"perfect": (1.0, 1.0), "good": (0.9, 0.98), "fair": (0.75, 0.93), "poor": (0.6, 0.7), "coin": (0.5, 0.5)}
"""Name -> share of relevant documents that it calls relevant, share of irrelevant ones that it calls irrelevant."""
HIDDEN = (0.3, 0.7)
QUERIES = (150, 300)
REVIEWED = (20, 50, 100)
VARIANTS = 40
"""Sets of hidden labels and of judge's labels for each line. Draws of queries use them in turn."""


def rankings(folder: Path) -> tuple[list[str], dict[str, dict[str, int]], list[dict[str, list[str]]]]:
    """Return the queries, their labels and the first ten documents of every system."""
    dataset = load(folder)
    lists = []
    for spec in SYSTEMS:
        system = System.parse(spec, Setup())
        run = system.run(dataset, system.runtime.store, 10).run
        lists.append(dict(zip(run.queries, run.id_lists(), strict=True)))
    return list(dataset.qrels), {query: dict(grades) for query, grades in dataset.qrels.items()}, lists


def values(qrels: dict[str, dict[str, int]], lists: list[dict[str, list[str]]]) -> Floats:
    """Return nDCG@10 × 100, systems × queries."""
    rows = []
    for each in lists:
        run = {query: {d: -float(rank) for rank, d in enumerate(each.get(query, ()))} for query in qrels}
        rows.append(100 * score(qrels, run, [HEADLINE_MEASURE]).values[HEADLINE_MEASURE])
    return np.array(rows)


def figures(
    truth: Floats, judged: Floats, queries: int, reviewed: int, draws: int, top: float | None, seed: int
) -> tuple[float, float, float]:
    """Return the coverage, the coverage of people alone, and the ratio of the mean widths."""
    random = np.random.default_rng(seed)
    target = float(truth.mean())
    held = held_alone = 0
    width = width_alone = 0.0
    for _ in range(draws):
        drawn = random.integers(len(truth), size=queries)
        sample = random.permutation(queries)[:reviewed]
        people = truth[drawn][sample]
        judge = judged[drawn]
        found = corrected_mean([ReviewedQueries(judge, sample, people)], top)
        alone = corrected_mean([ReviewedQueries(np.zeros(queries), sample, people)], top)
        held += holds(found, target)
        held_alone += holds(alone, target)
        width += reach(found)
        width_alone += reach(alone)
    return held / draws, held_alone / draws, width / width_alone


def holds(found: CorrectedMean | None, target: float) -> bool:
    """Return True if the interval holds the truth. A sample without an interval must be the truth itself."""
    assert found is not None
    low, high = found.bounds
    return low - 1e-9 <= target <= high + 1e-9


def reach(found: CorrectedMean | None) -> float:
    """Return the width of an interval."""
    assert found is not None
    low, high = found.bounds
    return high - low


def main() -> None:
    """Print one line for each setting, and the means over the grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    queries, labels, lists = rankings(given.folder)
    pools = {query: sorted({d for each in lists for d in each.get(query, ())}) for query in queries}
    coverages: list[float] = []
    widths: list[float] = []
    print("hidden  judge    agreement  queries  labelled   score: held  alone  width   difference: held  alone  width")
    for hidden, (name, (hit, clear)) in product(HIDDEN, JUDGES.items()):
        random = np.random.default_rng(11)
        truths, judged = [], []
        agreed = asked = 0
        for _ in range(VARIANTS):
            kept = {
                query: {d: g for d, g in labels[query].items() if g <= 0 or random.random() >= hidden}
                for query in queries
            }
            by_people, by_judge = {}, {}
            for query in queries:
                right = {d: int(labels[query].get(d, 0) > 0) for d in pools[query] if d not in kept[query]}
                said = {d: int(random.random() < (hit if grade else 1 - clear)) for d, grade in right.items()}
                agreed += sum(said[d] == right[d] for d in right)
                asked += len(right)
                by_people[query] = {**kept[query], **right}
                by_judge[query] = {**kept[query], **said}
            truths.append(values(by_people, lists))
            judged.append(values(by_judge, lists))
        # Relevant documents outside the pool stay hidden, from people too, so each variant has its own truth.
        for size, reviewed in product(QUERIES, REVIEWED):
            cells = []
            for top, pick in ((100.0, lambda rows: rows[0]), (None, lambda rows: rows[0] - rows[1])):
                found = [
                    figures(pick(right), pick(said), size, reviewed, given.draws // VARIANTS, top, seed)
                    for seed, (right, said) in enumerate(zip(truths, judged, strict=True))
                ]
                cells += list(np.mean(found, axis=0))
            coverages += [cells[0], cells[3]]
            widths += [cells[2], cells[5]]
            print(
                f"{hidden:6.0%}  {name:8} {agreed / asked:9.1%}  {size:7}  {reviewed:8}   {cells[0]:11.1%}"
                f"  {cells[1]:5.1%}  {cells[2]:5.2f}   {cells[3]:16.1%}  {cells[4]:5.1%}  {cells[5]:5.2f}"
            )
    print(f"mean coverage {np.mean(coverages):.1%}, lowest {np.min(coverages):.1%}; widest {np.max(widths):.3f}")


if __name__ == "__main__":
    main()
