"""Comparisons of systems that were run several times contain the chance of the queries and of the runs."""

from __future__ import annotations

import json

import pytest

from r2med.evaluation.comparison.comparison import Comparison, comparison
from r2med.evaluation.comparison.gaps import Pair
from r2med.evaluation.comparison.report_tables import pair_table, score_table
from r2med.evaluation.comparison.standings import intervals
from r2med.evaluation.comparison.verdicts import chance, warnings
from r2med.foundation.pages.latex import table_latex
from support.facts import some_states, states
from support.records import collection, record, records, repeated

DATASETS = {"Biology": 30, "PMC-Clinical": 20}
OFTEN, TWICE, ONCE, FIXED = "often(x)", "twice(x)", "once(x)", "bm25"
SYSTEMS = {OFTEN: (0.5, 5), TWICE: (0.45, 2), ONCE: (0.4, 1), FIXED: (0.3, -1)}


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return comparison(collection(repeated(SYSTEMS, DATASETS, noise=0.1, shift=0.05)), resamples=200)


def pair_of(compared: Comparison, a: str, b: str) -> Pair:
    return next(pair for pair in compared.pairs if (pair.a, pair.b) == (a, b))


def test_the_parts_of_an_interval_are_those_of_queries_and_runs(compared: Comparison) -> None:
    known = {each.system: each for each in compared.systems}
    often, fixed = known[OFTEN], known[FIXED]
    assert often.mean and often.mean.low is not None and often.mean.high is not None
    assert often.from_queries and often.from_runs
    assert often.from_queries**2 + often.from_runs**2 == pytest.approx(((often.mean.high - often.mean.low) / 2) ** 2)
    assert fixed.from_queries and fixed.from_runs == 0.0
    for few in (known[TWICE], known[ONCE]):
        assert few.from_queries and few.from_runs is None
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
            for name in ("varies", "from_runs", "turns_on_same_queries", "turns_on_new_queries"):
                each.pop(name, None)
        parts.append(json.dumps(content))
    assert parts[0] == parts[1]


def test_an_order_turns_with_a_probability_only_where_the_runs_are_known(compared: Comparison) -> None:
    pair = pair_of(compared, OFTEN, FIXED)
    assert pair.turns_on_same_queries is not None and pair.turns_on_new_queries is not None
    assert 0 < pair.turns_on_same_queries <= pair.turns_on_new_queries < 0.5
    states(chance(pair), "from the queries", "from the runs", "same queries", "new queries")
    unknown = pair_of(compared, OFTEN, ONCE)
    assert (unknown.from_runs, unknown.turns_on_same_queries, unknown.turns_on_new_queries) == (None, None, None)
    states(chance(unknown), "from the queries", "not known from the runs")


def test_the_text_of_two_systems_without_chance_is_of_the_queries_only() -> None:
    fixed = comparison(collection(records({"a": 0.3, "b": 0.5}, DATASETS)), resamples=99)
    states(chance(fixed.pairs[0]), "new queries", "< 1 %")
    assert "runs" not in chance(fixed.pairs[0]) and "same queries" not in chance(fixed.pairs[0])


def test_a_row_with_too_few_runs_says_that_its_interval_is_of_the_queries_only(compared: Comparison) -> None:
    some_states(warnings(compared), TWICE, "2 runs", "queries only")


def test_tables_and_latex_mark_one_run(compared: Comparison) -> None:
    table = score_table(compared)
    assert table.heads[-1] == "Runs"
    assert [row[-1] for row in table.rows] == ["5 runs", "2 runs", "one run", "deterministic"]
    assert "one run" in table_latex(table)
    pairs = table_latex(pair_table(compared))
    assert "not known" in pairs and TWICE in pairs and "2 runs of a system" in pairs


def test_json_has_runs_and_both_parts(compared: Comparison) -> None:
    content = json.loads(json.dumps(compared.as_json(), allow_nan=False))
    assert content["means"][OFTEN]["runs"] == 5
    assert content["means"][ONCE]["from_runs"] is None
    assert {"from_queries", "from_runs", "turns_on_same_queries", "turns_on_new_queries"} <= set(content["pairs"][0])
