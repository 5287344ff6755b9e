"""A collection has the records of several repeats: values are means, and two records of one repeat are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.records.collection import checked, collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import RunFacts
from r2med.evaluation.records.repeats import mixed_repeats
from r2med.evaluation.records.stored_records import StoredRecord, equal_repeats, missing_repeats
from r2med.foundation.core.errors import UserError
from support.facts import some_states, states
from support.records import collection, repeated, write_records

SYSTEMS = {"hyde(x) → bm25": (0.5, 5), "listwise(x)": (0.4, 2), "bm25": (0.3, -1)}
MADE = repeated(SYSTEMS, {"one": 12, "two": 9})


def test_the_repeats_of_a_system_are_one_cell_in_their_order(tmp_path: Path) -> None:
    read = collect([write_records([*reversed(MADE)], tmp_path / "results")])
    repeats = read.repeats("hyde(x) → bm25", "one")
    assert [kept.record.repeat for kept in repeats] == [0, 1, 2, 3, 4]
    cell = read.cell("hyde(x) → bm25", "one")
    assert cell is not None and cell.record == repeats[0].record
    assert len(read.runs_of_all) == len(MADE)
    assert len(read.repeats("bm25", "one")) == 1
    assert read.repeats("bm25", "nowhere") == ()
    assert (read.varies("hyde(x) → bm25"), read.varies("bm25")) == (True, False)


def test_values_are_means_over_repeats() -> None:
    read = collection(MADE)
    queries, values = read.values()["one"]
    for line, system in zip(values, read.systems, strict=True):
        mine = [each for each in MADE if (each.system, each.dataset.name) == (system, "one")]
        runs = [[each.per_query[query]["nDCG@10"] for query in queries] for each in mine]
        np.testing.assert_allclose(line, np.mean(runs, axis=0))


def test_collections_of_a_part_keep_the_repeats() -> None:
    part = collection(MADE).on(["one"])
    assert len(part.repeats("hyde(x) → bm25", "one")) == 5
    again = checked(part)
    assert len(again.repeats("hyde(x) → bm25", "one")) == 5


def test_two_records_of_one_repeat_are_refused() -> None:
    kept = [StoredRecord(each, Path(f"{number}.json")) for number, each in enumerate(MADE)]
    with pytest.raises(UserError) as error:
        checked([*kept, StoredRecord(MADE[2], Path("again.json"))])
    states(error.value, "two records", "repeat 2", "2.json", "again.json")


def test_a_missing_repeat_is_a_notice() -> None:
    without = [each for each in MADE if (each.repeat, each.system) != (1, "hyde(x) → bm25")]
    [notice] = missing_repeats(collection(without))  # it is equal for both datasets
    states(notice, "hyde(x) → bm25", "2 datasets", "repeat 1", "missing")
    of_one = [each for each in without if each.dataset.name == "one"]
    some_states(missing_repeats(collection(of_one)), "hyde(x) → bm25", "one", "repeat 1", "missing")
    some_states(comparison(collection(without), resamples=9).notices, "hyde(x) → bm25", "repeat 1", "missing")
    assert not list(missing_repeats(collection(MADE)))


def test_repeats_with_the_same_rankings_are_a_notice() -> None:
    def with_run(number: int, run: str) -> Record:
        facts = RunFacts(file=f"{number}.run", sha256=run, depth=10)
        return MADE[number].model_copy(update={"run": facts})

    assert {MADE[number].system for number in range(3)} == {"hyde(x) → bm25"}
    different = [with_run(number, str(number)) for number in range(3)]
    assert not list(equal_repeats(collection(different)))
    copied = [with_run(number, "a" if number < 2 else "b") for number in range(3)]
    some_states(equal_repeats(collection(copied)), "hyde(x) → bm25", "one", "0, 1", "copies")


def test_a_failed_try_of_one_repeat_does_not_hide_another_repeat() -> None:
    failed = MADE[1].model_copy(update={"stages": (MADE[1].stages[0].model_copy(update={"failures": 9, "asked": 12}),)})
    read = collection([MADE[0], failed, *MADE[2:]])
    assert [kept.record.repeat for kept in read.repeats("hyde(x) → bm25", "one")] == [0, 2, 3, 4]


def test_repeats_with_different_settings_are_refused_together() -> None:
    warmer = {"expand": {"stage": "hyde", "sampling": {"temperature": 1.0}}}
    cooler = {"expand": {"stage": "hyde", "sampling": {"temperature": 0.5}}, "repeat": 1}
    assert mixed_repeats([warmer, warmer | {"repeat": 1, "generations": "other texts"}]) == ""
    fault = mixed_repeats([cooler, warmer])
    states(fault, "repeat 1 has other settings than repeat 0", "expand.sampling.temperature", "0.5", "1.0")


def test_a_number_of_a_repeat_that_no_run_can_have_is_refused() -> None:
    body = MADE[0].model_dump()
    assert Record(**body | {"settings": {"repeat": 999}}).repeat == 999
    for wrong in (0, -1, 1000, 10**12, True, "1", 1.0, None):
        with pytest.raises(ValueError, match="from 1 to 999"):
            Record(**body | {"settings": {"repeat": wrong}})
