"""The rule of `r2med advise` against the one of version 0.2, on draws of the questions of a judged dataset.

    python benchmarks/advice.py path/to/SciFact
    python benchmarks/advice.py

Systems are run once on all questions, and their means over all of them are the truth. Each draw takes some questions
with replacement, as a user's judged questions, and each rule recommends a system from them. Its true loss is what the
truly best system has more, in points. Systems are ordered by cost as they are listed.

Without a folder: equal pipelines are drawn, on 100 questions. It prints how much the highest score is above the mean of
all pipelines, and how much the score of choosing on other questions is, which `r2med advise` shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from r2med.evaluation.advice.advice import surely_within
from r2med.evaluation.advice.folds import FOLDS, chosen_on_others
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA, Sample, SystemPairs, sign_flips

# From cheap to dear: what a word search looks at grows to the right, and RM3 searches twice.
SYSTEMS = (
    *(
        f"bm25(scorer=lucene, k1={k1}, b={b})"
        for k1 in ("0.1", "0.4", "0.9", "1.2", "2", "4")
        for b in ("0", "0.4", "0.75", "1")
    ),
    "bm25",
    "rm3 → bm25",
    "rm3 → bm25(scorer=lucene, k1=0.9, b=0.4)",
    "rm3 → bm25(scorer=lucene, k1=2, b=0.9)",
)
GIVE_UP = 2.0
QUESTIONS = 100
"""Number of questions on which equal pipelines are drawn."""
Rule = Callable[[Floats], int]


def scores(folder: Path, systems: Sequence[str]) -> Floats:
    """Return systems × questions, in points."""
    import r2med

    records = r2med.run(list(systems), str(folder), out=None, k=10).records
    values = {record.system: [100 * each["nDCG@10"] for each in record.per_query.values()] for record in records}
    return np.array(list(values.values()))


def old_rule(values: Floats) -> int:
    """Return the cheapest system whose difference to the best has an adjusted p above 0.05 (version 0.2)."""
    best = int(values.mean(axis=1).argmax())
    pairs = SystemPairs.against(best, len(values))
    [flips] = sign_flips([Sample.whole({"": values})], pairs, 999)
    return min([best, *pairs.first[flips.p_adjusted > ALPHA].tolist()])


def new_rule(values: Floats) -> int:
    """Return the system with the best mean."""
    return int(values.mean(axis=1).argmax())


def giving_up(values: Floats) -> int:
    """Return the cheapest system that surely loses no more than two points, else the best; so for few questions."""
    return min(surely_within(values, new_rule(values), GIVE_UP))


def simulate(values: Floats, questions: int, draws: int, seed: int, rule: Rule, population: int = 0) -> Floats:
    """Return the true loss of what a rule recommends in each draw.

    With a `population` each draw has its own: this many questions, chosen at random, are all that there are.
    """
    random = np.random.default_rng([seed, questions])
    losses = []
    for _ in range(draws):
        whole = values[:, random.permutation(values.shape[1])[:population]] if population else values
        truth = whole.mean(axis=1)
        taken = random.integers(0, whole.shape[1], questions)
        losses.append(truth.max() - truth[rule(whole[:, taken])])
    return np.array(losses)


def chosen_points(points: Floats) -> float:
    """Return the score of choosing: each fold is answered by the row that is best on the other folds."""
    folds = [list(range(fold, points.shape[1], FOLDS)) for fold in range(FOLDS)]
    rows = chosen_on_others(points, folds)
    return float(sum(points[row, fold].sum() for row, fold in zip(rows, folds, strict=True))) / points.shape[1]


def equal_pipelines(draws: int, seed: int) -> None:
    """Print how much the highest score of equal pipelines and the score of choosing are above the mean of all."""
    random = np.random.default_rng(seed)
    kinds: dict[str, Callable[[tuple[int, int]], Floats]] = {
        "normal": lambda size: random.normal(50, 25, size),
        "binary": lambda size: np.where(random.random(size) < random.beta(0.3, 2.7, size[1]), 100.0, 0.0),
    }
    for name, drawn in kinds.items():
        for pipelines in (2, 5, 12, 40):
            samples = [drawn((pipelines, QUESTIONS)) for _ in range(draws)]
            highest = np.mean([each.mean(axis=1).max() - each.mean() for each in samples])
            above = [chosen_points(each) - each.mean() for each in samples]
            error = np.std(above) / np.sqrt(draws)
            print(
                f"{name:7} {pipelines:3} equal pipelines  highest {highest:+.2f}  "
                f"choosing {np.mean(above):+.2f} (standard error {error:.2f})"
            )


def main() -> None:
    """Print the mean true loss of each rule, and how often it is above two points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--population", type=int, default=0, help="Questions of a random population for each draw.")
    asked = parser.parse_args()
    if asked.folder is None:
        equal_pipelines(asked.draws, asked.seed)
        return
    values = scores(asked.folder, SYSTEMS)
    print(f"{len(values)} systems, {values.shape[1]} questions; true means {np.sort(values.mean(axis=1)).round(1)}")
    rules = {"0.2: cheapest with p > 0.05": old_rule, "best mean": new_rule, "--give-up 2": giving_up}
    for questions in (30, 50, 100, 200):
        for name, rule in rules.items():
            loss = simulate(values, questions, asked.draws, asked.seed, rule, asked.population)
            above = f"above {GIVE_UP:g}: {(loss > GIVE_UP).mean():6.1%}"
            print(f"{questions:4} questions  {name:28} mean loss {loss.mean():5.2f}  {above}")


if __name__ == "__main__":
    main()
