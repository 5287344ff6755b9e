"""Comparisons of systems that were run several times contain the chance of the queries and of the runs."""

from __future__ import annotations

import json

import pytest

from r2med.evaluation.comparison.comparison import Comparison, comparison
from r2med.evaluation.comparison.gaps import Pair
from r2med.evaluation.comparison.report_tables import pair_table, score_table
from r2med.evaluation.comparison.standings import intervals
from r2med.evaluation.comparison.verdicts import warnings
from r2med.foundation.pages.text_formats import table_latex
from support.facts import some_states
from support.records import collection, record, records, repeated

DATASETS = {"Biology": 30, "PMC-Clinical": 20}
OFTEN, TWICE, ONCE, FIXED = "often(x)", "twice(x)", "once(x)", "bm25"
SYSTEMS = {OFTEN: (0.5, 5), TWICE: (0.45, 2), ONCE: (0.4, 1), FIXED: (0.3, -1)}


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return comparison(collection(repeated(SYSTEMS, DATASETS, noise=0.1, shift=0.05)), resamples=200)


def pair_of(compared: Comparison, a: str, b: str) -> Pair:
    return next(pair for pair in compared.pairs if (pair.a, pair.b) == (a, b))


def test_each_system_says_how_often_it_was_run(compared: Comparison) -> None:
    words = {each.system: each.run_words for each in compared.systems}
    assert words == {OFTEN: "5 runs", TWICE: "2 runs", ONCE: "one run", FIXED: "deterministic"}


def test_the_interval_of_several_runs_is_wider_than_that_of_their_means() -> None:
    made = repeated({OFTEN: (0.5, 4), FIXED: (0.3, -1)}, DATASETS, noise=0.02, shift=0.1)
    averaged = [each for each in made if each.repeat == 0]
    for number, each in enumerate(averaged):
        runs = [o for o in made if (o.system, o.dataset.name) == (each.system, each.dataset.name)]
        means = [sum(run.per_query[q]["nDCG@10"] for run in runs) / len(runs) for q in each.per_query]
        averaged[number] = record(each.system, each.dataset.name, means, varies=each.varies)
    for of in (
        lambda records: intervals(collection(records))[OFTEN].mean,
        lambda records: comparison(collection(records), resamples=200).pairs[0],
    ):
        both, queries = of(made), of(averaged)
        assert both.high - both.low > 1.2 * (queries.high - queries.low)
    pair, plain = (comparison(collection(each), resamples=2000).pairs[0] for each in (made, averaged))
    assert pair.difference == pytest.approx(plain.difference)
    assert (pair.p, pair.p_t) >= (plain.p, plain.p_t)


def test_with_one_run_every_number_stays() -> None:
    """A system that varies and was run once has the numbers of one that does not vary."""
    fixed = records({"a": 0.3, "b": 0.4, "c": 0.42}, DATASETS)
    varying = [
        each.model_copy(update={"stages": (each.stages[0].model_copy(update={"varies": True}),)}) for each in fixed
    ]
    parts = []
    for made in (fixed, varying):
        content = comparison(collection(made), resamples=300, slice_by=["task", "length"]).as_json()
        for each in (*content["means"].values(), *content["pairs"]):
            each.pop("varies", None)
        parts.append(json.dumps(content))
    assert parts[0] == parts[1]


def test_a_row_with_too_few_runs_says_that_its_interval_is_of_the_queries_only(compared: Comparison) -> None:
    some_states(warnings(compared), TWICE, "2 runs", "queries only")


def test_tables_and_latex_mark_one_run(compared: Comparison) -> None:
    table = score_table(compared)
    assert table.heads[-1] == "Runs"
    assert [row[-1] for row in table.rows] == ["5 runs", "2 runs", "one run", "deterministic"]
    assert "one run" in table_latex(table)
    pairs = table_latex(pair_table(compared))
    assert TWICE in pairs and "2 runs of a system" in pairs


def test_json_has_runs(compared: Comparison) -> None:
    content = json.loads(json.dumps(compared.as_json(), allow_nan=False))
    assert content["means"][OFTEN]["runs"] == 5
