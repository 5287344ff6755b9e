"""Verdicts: a board believes an entry only if `verify` of the same job checked exactly these bytes."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import UserError, submit, verify
from r2med.evaluation.records.collection import checked
from r2med.foundation.store import Store, digest
from r2med.publication.leaderboard.board_entries import read_entries
from r2med.publication.leaderboard.entry_verdicts import NO_VERDICT, Verdicts
from r2med.publication.leaderboard.submission import entry_files
from r2med.publication.site.leaderboard import NOT_SEEN, site_value
from r2med.publication.site.site import make_board
from support.fork_server import Command

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    r2med.run(["bm25", "bm25(k1=2)"], "demo/Biology", out=folder / "runs", store=Store(folder / "store"))
    return folder / "runs"


@pytest.fixture
def entries(results: Path, tmp_path: Path) -> Path:
    submit(["bm25"], tmp_path / "entries/ward.json", results)
    return tmp_path / "entries"


def forged(entry: Path, to: Path, change: Callable[[Any], object]) -> Path:
    body = json.loads(entry.read_text())
    change(body["records"][0])
    del body["checksum"]
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps({**body, "checksum": digest(body)}))
    return to


def perfect(record: Any) -> None:
    record["per_query"] = {query: dict.fromkeys(values, 1.0) for query, values in record["per_query"].items()}
    record["mean"] = dict.fromkeys(record["mean"], 1.0)


def rows(entries: Path, verdicts: Verdicts | None = None) -> dict[str, Any]:
    submitted = read_entries(entries, verdicts=verdicts)
    return {each["name"]: each for each in site_value(checked(submitted.records))["systems"]}


@pytest.mark.parametrize("name", ["nested/deeper/great.json", ".hidden.json", ".github/great.json"])
def test_verify_and_board_read_the_same_files(name: str, entries: Path, results: Path, tmp_path: Path) -> None:
    """The blocker of version 1.0: a forged entry in a folder was on the board, and the check did not look there."""
    false = forged(entries / "ward.json", entries / name, perfect)
    assert entry_files([entries]) == sorted([false, entries / "ward.json"])
    found = {each.entry: each.fault for each in verify(entries, results, verdicts=tmp_path / "verdicts.json")}
    assert found[entries / "ward.json"] == "" and "but its run gives" in found[false]
    shown = rows(entries, Verdicts.read(tmp_path / "verdicts.json", [entries]))
    assert {row: each["unverified"] for row, each in shown.items()} == {
        "bm25": "",
        f"bm25 ({name.removesuffix('.json')}) (not verified)": found[false],
    }


def test_without_a_verdict_of_these_bytes_an_entry_is_marked(entries: Path, results: Path, tmp_path: Path) -> None:
    assert [each["unverified"] for each in rows(entries).values()] == [NO_VERDICT]
    verify([entries / "ward.json"], results, verdicts=tmp_path / "verdicts.json")
    verdicts = Verdicts.read(tmp_path / "verdicts.json")
    assert list(rows(entries, verdicts)) == ["bm25"]
    forged(entries / "ward.json", entries / "ward.json", lambda record: record.update(offline=True))
    assert list(rows(entries, verdicts)) == ["bm25 (not verified)"]


def test_verdicts_are_never_read_from_what_was_submitted(entries: Path, results: Path, tmp_path: Path) -> None:
    verify(entries, results, verdicts=tmp_path / "verdicts.json")
    inside = entries / "verdicts.json"
    shutil.copy(tmp_path / "verdicts.json", inside)
    (tmp_path / "link.json").symlink_to(inside)
    for file in (inside, tmp_path / "link.json"):
        with pytest.raises(UserError, match="keep verdicts outside of it"):
            make_board(out=tmp_path / "site", entries=entries, verdicts=file)
        with pytest.raises(UserError, match="keep verdicts outside of it"):
            verify(entries, results, verdicts=file)
    with pytest.raises(UserError, match="keep verdicts outside of it"):
        verify(entries, results, verdicts=results / "verdicts.json")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"entries": {"x": 1}}', b'{"format": 9}', b"\xff"])
def test_a_file_without_verdicts_is_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "verdicts.json").write_bytes(content)
    with pytest.raises(UserError, match=r"verdicts\.json"):
        Verdicts.read(tmp_path / "verdicts.json")
    with pytest.raises(UserError, match="no such file: r2med verify"):
        Verdicts.read(tmp_path / "missing.json")


def test_two_teams_with_one_system_are_two_rows_with_two_names(entries: Path, results: Path, tmp_path: Path) -> None:
    (entries / "nested").mkdir()
    for name in ("a-copy.json", "nested/ward.json"):
        (entries / name).write_bytes((entries / "ward.json").read_bytes())
    verify(entries, results, verdicts=tmp_path / "verdicts.json")
    shown = rows(entries, Verdicts.read(tmp_path / "verdicts.json"))
    assert {row: each["entry"] for row, each in shown.items()} == {
        "bm25": "a-copy",
        "bm25 (nested/ward)": "nested/ward",
        "bm25 (ward)": "ward",
    }


def test_a_system_that_has_the_name_of_another_row_gets_a_name_of_its_own(
    entries: Path, results: Path, tmp_path: Path
) -> None:
    def renamed(record: Any) -> None:
        record["system"] = "bm25 (ward)"

    (entries / "a.json").write_bytes((entries / "ward.json").read_bytes())
    forged(entries / "ward.json", entries / "b.json", renamed)
    verify(entries, results, verdicts=tmp_path / "verdicts.json")
    shown = rows(entries, Verdicts.read(tmp_path / "verdicts.json"))
    assert {row: each["entry"] for row, each in shown.items()} == {
        "bm25": "a",
        "bm25 (ward)": "b",
        "bm25 (ward) (ward)": "ward",
    }


@pytest.mark.parametrize(
    "name", ["ward\u200b.json", "w\u0430rd.json", "ward\n.json", "ward\u3164.json", "w\u20b5rd.json"]
)
def test_an_entry_with_an_unclear_name_is_refused(name: str, entries: Path, results: Path) -> None:
    (entries / "ward.json").rename(entries / name)
    [found] = verify(entries, results)
    assert "the name 'w" in found.fault
    with pytest.raises(UserError, match="the name 'w"):
        rows(entries)


def test_every_board_says_what_cannot_be_seen(entries: Path, results: Path, tmp_path: Path) -> None:
    of_entries = make_board(out=tmp_path / "site", entries=entries)
    of_records = make_board(results, out=tmp_path / "mine", texts=False)
    for page in (of_entries, of_records):
        assert NOT_SEEN in (page.parent / "data/site.js").read_text()
    assert NOT_SEEN in " ".join((ROOT / "docs/verify.md").read_text("utf-8").replace("`", "").split())


def test_an_entry_on_different_data_of_one_name_does_not_stop_the_board(
    results: Path, entries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = json.loads((entries / "ward.json").read_text())
    del body["checksum"]
    second = copy.deepcopy(body["records"][0])
    body["records"][0]["dataset"]["name"] = "demo/Biology+a/labels.jsonl"
    second["dataset"] |= {"name": "demo/Biology+b/labels.jsonl", "fingerprint": "0" * 32}
    body["records"].append(second)
    (entries / "z.json").write_text(json.dumps({**body, "checksum": digest(body)}))
    assert len(rows(entries)) == 2
    assert any("were made on different data" in line for line in caplog.messages)


def test_a_name_belongs_to_its_entry_and_takes_no_record_from_another_team(
    results: Path, entries: Path, tmp_path: Path
) -> None:
    """One record of a squatter removed all records of another team."""
    submit(["bm25", "bm25(k1=2)"], entries / "ward.json", results)
    forged(entries / "ward.json", entries / "a-squatter.json", perfect)
    verify(entries / "ward.json", results, verdicts=tmp_path / "verdicts.json")
    shown = rows(entries, Verdicts.read(tmp_path / "verdicts.json"))
    assert {row: each["entry"] for row, each in shown.items()} == {
        "bm25": "ward",
        "bm25(k1=2)": "ward",
        "bm25 (a-squatter) (not verified)": "a-squatter",
        "bm25(k1=2) (a-squatter) (not verified)": "a-squatter",
    }


def test_only_the_record_that_does_not_fit_is_left_out(
    results: Path, entries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    submit(["bm25", "bm25(k1=2)"], entries / "ward.json", results)

    def fewer(record: Any) -> None:
        last = list(record["per_query"])[-1]
        del record["per_query"][last], record["queries"][last]
        for name in record["mean"]:
            record["mean"][name] = sum(each[name] for each in record["per_query"].values()) / len(record["per_query"])

    forged(entries / "ward.json", entries / "z-fewer.json", fewer)
    assert "bm25(k1=2) (not verified)" in rows(entries)
    assert [line for line in caplog.messages if "is left out" in line] == [
        f"bm25 of entry {entries / 'z-fewer.json'} is left out: {entries / 'z-fewer.json'} scores other queries of "
        f"demo/Biology than {entries / 'ward.json'}: run it again"
    ]


def test_the_workflow_checks_what_it_shows() -> None:
    """The workflow of the docs gives verify and board the same folder, and keeps verdicts outside of it."""
    text = (Path(__file__).parents[3] / "docs/leaderboard-check.yml").read_text()
    steps = [line.split("run: ")[1].split() for line in text.splitlines() if "run: r2med" in line]
    check, show = steps
    assert check[1:3] == ["verify", "entries"]
    assert show[1:4] == ["board", "--entries", "entries"]
    written = check[check.index("--verdicts") + 1]
    assert written == show[show.index("--verdicts") + 1] == '"$RUNNER_TEMP/verdicts.json"'


def test_the_commands_write_and_read_verdicts(r2med: Command, results: Path, entries: Path, tmp_path: Path) -> None:
    done = r2med("verify", entries, "--runs", results, "--verdicts", "verdicts.json")
    assert done.returncode == 0, done.stderr
    made = r2med("board", "--entries", entries, "--verdicts", "verdicts.json", "-o", "site")
    assert made.returncode == 0, made.stderr
    assert "not verified" not in (tmp_path / "site/data/site.js").read_text()
