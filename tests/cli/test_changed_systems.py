"""A researcher's loop: run a class of one's own, change it, run it again, compare. Two versions have two names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import r2med as package
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from support.commands import Ended
from support.facts import error_states, states

Run = Callable[..., Ended]
SYSTEM = "py:mine:Mine"
BOTH = "demo/Biology,demo/MedQA-Diag"


def write_class(folder: Path, letters: str, revision: str = "") -> None:
    """Write a class that counts letters, and the texts that it encodes in a file."""
    stated = f"    revision = {revision!r}\n" if revision else ""
    (folder / "mine.py").write_text(
        f"class Mine:\n{stated}    def encode(self, texts):\n"
        "        with open('encoded', 'a') as file:\n"
        "            file.write('\\n' * len(texts))\n"
        f"        return [[float(text.count(letter)) for letter in {letters!r}] for text in texts]\n"
    )


def encoded(folder: Path) -> int:
    """Return the number of texts that the class has encoded."""
    return (folder / "encoded").read_text().count("\n")


def version_on(folder: Path, dataset: str, system: str = SYSTEM) -> float:
    kept = collect([], folder / "results").cell(system, dataset)
    assert kept is not None
    return kept.record.mean["nDCG@10"]


@pytest.mark.parametrize("revisions", [("", ""), ("1", "2")])
def test_of_two_versions_of_a_class_the_one_that_was_run_last_counts(
    r2med: Run, tmp_path: Path, revisions: tuple[str, str]
) -> None:
    write_class(tmp_path, "aeiou", revisions[0])
    assert r2med("run", "bm25", SYSTEM, "--data", BOTH).returncode == 0
    first, elsewhere = (version_on(tmp_path, name) for name in BOTH.split(","))

    write_class(tmp_path, "aeiouxyz", revisions[1])
    assert r2med("run", SYSTEM, "--data", "demo/Biology").returncode == 0
    second = version_on(tmp_path, "demo/Biology")
    assert second != first
    assert version_on(tmp_path, "demo/MedQA-Diag") == elsewhere, "records of other datasets stay"
    compared = r2med("compare")
    assert compared.returncode == 0 and f"{100 * second:.2f}" in compared.stdout
    notes = [line for line in compared.stderr.splitlines() if line.startswith("note:")]
    states(notes[0], "1 older record", f"{SYSTEM} on demo/Biology", "--name")
    states(notes[1], SYSTEM, "another version on demo/MedQA-Diag", "demo/Biology")
    assert len(notes) == 2
    assert r2med("board").returncode == 0

    write_class(tmp_path, "aeiou", revisions[0])
    before = encoded(tmp_path)
    again = r2med("run", SYSTEM, "--data", BOTH)
    assert again.returncode == 0 and "2 of them reused" in again.stdout
    assert encoded(tmp_path) == before, "a later process encodes nothing again"
    assert version_on(tmp_path, "demo/Biology") == first, "what was read from the folder was named too"
    states(r2med("compare").stderr, "1 older record")


def test_a_change_of_a_class_leaves_no_repeat_of_the_earlier_one(tmp_path: Path) -> None:
    """Repeats 3 and 4 of the earlier version would be averaged with repeats 0 to 2 of the new one."""
    [made] = package.run("bm25", "demo/Biology", out=None).records
    path = tmp_path / "demo" / "Biology"
    for version, runs in enumerate((5, 3)):
        for repeat in range(runs):
            settings = {**made.settings, "version": version} | ({"repeat": repeat} if repeat else {})
            named = f"2026-01-01T00:00:0{version}.00000{repeat}+00:00"
            record = made.model_copy(update={"settings": settings, "named": named})
            record.write(path / f"bm25-{version}{repeat}00000000.json")
    repeats = collect([], tmp_path).repeats("bm25", "demo/Biology")
    assert [(kept.record.repeat, kept.record.settings["version"]) for kept in repeats] == [(0, 1), (1, 1), (2, 1)]


def test_two_versions_under_two_names_stand_side_by_side_everywhere(r2med: Run, tmp_path: Path) -> None:
    for name, letters in (("mine v1", "aeiou"), ("mine v2", "aeiouxyz")):
        write_class(tmp_path, letters)
        ended = r2med("run", SYSTEM, "--data", "demo/Biology", "--name", name)
        assert ended.returncode == 0 and name in ended.stdout and SYSTEM not in ended.stdout
    compared = r2med("compare", "mine v1", "mine v2")
    assert compared.returncode == 0 and "older record" not in compared.stderr
    assert "mine v1 cannot be distinguished from mine v2" in compared.stdout and SYSTEM not in compared.stdout
    assert "mine v1 & mine v2 & demo/Biology" in r2med("compare", "--format", "latex").stdout
    assert "mine v2" in r2med("why", "mine v2", "demo/Biology", "0").stdout
    assert r2med("board", "--out", "board").returncode == 0
    shown = " ".join(file.read_text() for file in (tmp_path / "board").rglob("*.js*"))
    assert "mine v1" in shown and "mine v2" in shown
    assert r2med("submit", "results", "--out", "entry.json").returncode == 0
    entry = json.loads((tmp_path / "entry.json").read_text())
    assert [(record["system"], record["name"]) for record in entry["records"]] == [
        (SYSTEM, "mine v1"),
        (SYSTEM, "mine v2"),
    ]
    assert entry["records"][0]["named"] == "", "when its author named it is nobody's business"


def test_a_name_computes_nothing_again_and_is_the_same_in_python(r2med: Run, tmp_path: Path) -> None:
    write_class(tmp_path, "aeiou")
    assert r2med("run", SYSTEM, "--data", "demo/Biology").returncode == 0
    before = encoded(tmp_path)
    assert r2med("run", SYSTEM, "--data", "demo/Biology", "--name", "mine v1").returncode == 0
    assert encoded(tmp_path) == before
    assert collect([], tmp_path / "results").systems == ("mine v1", SYSTEM)
    results = package.run("bm25(k1=1.2)", "demo/Biology", name="ours", out=tmp_path / "results")
    assert results.systems == ["ours"]
    [record] = results.records
    assert (record.system, record.name, record.display_name) == ("bm25(k1=1.2)", "ours", "ours")
    other = package.run("bm25(b=0.5)", "demo/Biology", name="ours", out=tmp_path / "results").records[0]
    kept = collect(["ours"], tmp_path / "results").cell("ours", "demo/Biology")
    assert kept is not None and kept.record.system == other.system, "the last run of a name counts"


def test_a_name_of_several_systems_of_another_one_or_of_rare_signs_is_refused(tmp_path: Path) -> None:
    run = {"data": "demo/Biology", "out": tmp_path / "results"}
    with error_states("--name x", "one system", "2", "bm25(b=0.5)"):
        package.run("bm25(b={0.5,0.6})", name="x", **run)
    with error_states("--name bm25", "another system"):
        package.run("bm25(b=0.5)", name="bm25", **run)
    for name, fact in (("a;b", "';'"), (" a", "begins"), ("a (TEAM)", "brackets"), ("a" * 81, "80"), ("a · b", "'·'")):
        with error_states("--name", fact):
            package.run("bm25", name=name, **run)
    package.lock("bm25", "demo/Biology", tmp_path / "plan.lock")
    with error_states("plan.lock", "--name x"):
        package.run(lock=tmp_path / "plan.lock", name="x", out=tmp_path / "results")
    assert not list(tmp_path.rglob("*-*.json")), "nothing was run"
    assert package.run("bm25", name="bm25", **run).records[0].name == "", "its own name is none"


def test_a_record_with_a_name_that_no_run_gives_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    package.run(["bm25", "bm25(b=0.5)"], "demo/Biology", out=tmp_path)
    path = next(tmp_path.rglob("bm25-*.json"))
    Record.read(path).model_copy(update={"name": "bm25\n<b>"}).write(path)
    assert collect([], tmp_path).systems == ("bm25(b=0.5)",)
    states(caplog.messages[0], path, "cannot be the name of a system")
