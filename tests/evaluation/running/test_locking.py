"""Locks: `run` and `compare` do what was decided beforehand, and nothing else."""

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

import r2med
from r2med.evaluation.records.collection import collect, record_files
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.batch import plan_run
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import digest as digest_of
from support.datasets import random_folder
from support.facts import error_states

SYSTEMS = ["bm25", "bm25(k1=1.2)", "bm25(b=0.9)"]


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=30)


@pytest.fixture
def plan(mini: Path, tmp_path: Path) -> Path:
    r2med.lock(SYSTEMS, mini, tmp_path / "plan.lock", k=20, measure="MRR", baseline="bm25")
    return tmp_path / "plan.lock"


def test_a_lock_holds_what_was_decided(plan: Path, mini: Path, tmp_path: Path) -> None:
    lock = Lock.read(plan)
    assert lock.systems == tuple(SYSTEMS)
    with pytest.raises(UserError, match="k must be at least 1, not 0"):
        r2med.lock(SYSTEMS, mini, tmp_path / "none", k=0)
    assert lock.datasets == {"mini": r2med.load(mini).fingerprint}
    assert (lock.measure, lock.baseline, lock.k) == ("MRR", "bm25", 20)
    assert lock.pairs == (("bm25(k1=1.2)", "bm25"), ("bm25(b=0.9)", "bm25"))
    assert lock.settings["bm25(b=0.9)"]["mini"]["retrieve"]["b"] == 0.9
    again = r2med.lock(SYSTEMS, mini, tmp_path / "again", k=20, measure="MRR", baseline="bm25")
    assert again.model_copy(update={"created": lock.created}) == lock


def test_run_does_what_was_locked_and_its_records_carry_the_digest(plan: Path, mini: Path, tmp_path: Path) -> None:
    r2med.run("bm25", mini, out=tmp_path / "out", k=20)  # a record of before
    digest = Lock.read(plan).digest
    results = r2med.run(data=mini, out=tmp_path / "out", lock=plan)
    assert [(record.system, record.lock) for record in results.records] == [(name, digest) for name in SYSTEMS]
    assert r2med.run(data=mini, out=tmp_path / "out", lock=plan).reused == 3
    assert {record.settings["k"] for record in results.records} == {20}


def test_run_refuses_anything_else(plan: Path, mini: Path, tmp_path: Path) -> None:
    other = random_folder(tmp_path / "other", documents=12)

    def refused(reason: str, *systems: str, data: Path = mini, **settings: int) -> None:
        with pytest.raises(UserError, match=re.escape(reason)):
            r2med.run(systems, data, out=tmp_path / "out", lock=plan, **settings)
        assert not (tmp_path / "out").exists()

    refused("plan.lock: bm25(k1=9) is not one of its systems", "bm25", "bm25(k1=9)")
    refused("plan.lock: other is not one of its datasets (mini)", data=other)
    refused("plan.lock: bm25 has other settings than those that were locked: k", k=30)
    shutil.rmtree(mini)
    random_folder(mini, documents=31)
    refused("plan.lock: mini has changed since it was locked")


def test_a_measure_that_is_named_is_obeyed_also_if_it_is_the_default(plan: Path, mini: Path, tmp_path: Path) -> None:
    assert Lock.read(plan).measure != "nDCG@10"
    for call in (partial(r2med.run, data=mini, out=tmp_path / "out"), partial(r2med.compare, results=tmp_path / "out")):
        with pytest.raises(UserError, match=r"plan\.lock: its measure is .*, not nDCG@10"):
            call(lock=plan, measure="nDCG@10")
    assert r2med.run(data=mini, lock=plan, out=None).measure == Lock.read(plan).measure


def test_an_edited_lock_is_refused(plan: Path, mini: Path, tmp_path: Path) -> None:
    body = json.loads(plan.read_text())
    for change in ({"measure": "nDCG@10"}, {"baseline": ""}, {"systems": ["bm25"]}):
        plan.write_text(json.dumps({**body, **change}))
        for action in (lambda: r2med.run(data=mini, lock=plan), lambda: r2med.compare(lock=plan)):
            with pytest.raises(UserError, match="was edited after it was written"):
                action()
    nan = json.dumps({**body, "settings": {"bm25": {"mini": {"k": float("nan")}}}})
    for content in ("", "[]", "{}", nan, json.dumps({**body, "format": 9})):
        plan.write_text(content)
        with pytest.raises(UserError, match=r"is not a lock|a lock of format 9"):
            Lock.read(plan)
    with pytest.raises(UserError, match="there is no such lock"):
        Lock.read(tmp_path / "none.lock")


def test_a_lock_without_the_settings_of_a_system_is_one_line(plan: Path) -> None:
    body = json.loads(plan.read_text())
    del body["settings"]["bm25"]["mini"], body["digest"]
    plan.write_text(json.dumps({**body, "digest": digest_of(body)}))
    with pytest.raises(UserError, match=r"plan\.lock is not a lock"):
        Lock.read(plan)


def test_a_lock_says_nothing_about_results_that_were_there_before(plan: Path, mini: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    r2med.run(SYSTEMS, mini, out=out, k=20)
    kept = collect([out]).cell("bm25", "mini")
    assert kept is not None
    made = kept.path.read_bytes()
    late = Lock.read(plan).model_copy(update={"created": "2999-01-01T00:00:00+00:00"})
    late.write(plan)
    results = r2med.run(data=mini, out=out, lock=plan)
    assert "before the lock, which decides nothing about it" in results.rows[0].errors[0]
    assert kept.path.read_bytes() == made  # its date is not replaced
    for file in record_files(out):
        Record.read(file).model_copy(update={"lock": late.digest}).write(file)
    with error_states("the record of bm25 on mini was made before this lock", "--out DIR", "--results DIR"):
        r2med.compare(results=out, lock=plan)


def test_compare_does_what_was_locked_and_refuses_anything_else(plan: Path, mini: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    r2med.run(SYSTEMS, mini, out=out, k=20)
    with error_states("the record of bm25 on mini was not made with this lock", "r2med run --lock", f"--out {out}"):
        r2med.compare(results=out, lock=plan)
    r2med.run(data=mini, out=out, lock=plan)
    compared = r2med.compare(results=out, lock=plan)
    assert (compared.measure, compared.baseline) == ("MRR", "bm25")
    assert {(pair.a, pair.b) for pair in compared.pairs} == {*Lock.read(plan).pairs}
    assert compared.notices[-1] == f"decided beforehand: lock {Lock.read(plan).digest[:12]} of plan.lock"
    with pytest.raises(UserError, match=r"its measure is MRR, not R@100; a lock allows nothing else"):
        r2med.compare(results=out, lock=plan, measure="R@100")
    with pytest.raises(UserError, match="compares all of bm25, "):
        r2med.compare("bm25", "bm25(b=0.9)", results=out, lock=plan)
    with pytest.raises(UserError, match="bge is not one of its systems"):
        r2med.compare("bge", results=out, lock=plan)


def test_a_refusal_names_the_setting_with_both_values(tmp_path: Path) -> None:
    made = r2med.lock("bm25", "demo/Biology", tmp_path / "a.lock")
    settings = json.loads(json.dumps(made.settings["bm25"]["demo/Biology"]))
    settings["retrieve"]["k1"] = 7
    fault = made.difference("bm25", "demo/Biology", made.datasets["demo/Biology"], settings)
    assert re.search(r"other settings than those that were locked: retrieve\.k1 is 7, but .* was locked", fault)


def test_a_lock_decides_the_precision_so_that_it_runs_on_any_device(tmp_path: Path) -> None:
    made = r2med.lock("bm25", "demo/Biology", tmp_path / "a.lock")
    assert made.model_settings() == {}
    settings = {"bm25": {"demo/Biology": {"retrieve": {"dtype": "float32"}}}}
    made.model_copy(update={"settings": settings}).write(tmp_path / "b.lock")
    plan = plan_run([], [], lock=tmp_path / "b.lock", setup=Setup())
    assert plan.runtime.setup.dtype == "float32"
    assert plan_run([], [], lock=tmp_path / "b.lock", setup=Setup(dtype="float16")).runtime.setup.dtype == "float16"


def test_an_explicit_measure_is_never_ignored(tmp_path: Path) -> None:
    r2med.lock(["bm25", "bm25(k1=2)"], "demo/Biology", tmp_path / "a.lock", measure="MRR")
    with pytest.raises(UserError, match="its measure is MRR, not nDCG@10"):
        r2med.compare(lock=tmp_path / "a.lock", measure="nDCG@10")
