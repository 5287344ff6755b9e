"""Writing a site: what it is made of, and that a good one is never harmed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from r2med import submit
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, digest
from r2med.publication.leaderboard.published import published
from r2med.publication.site import make_board
from r2med.publication.site.board_sets import dataset_sets
from r2med.publication.site.site import data_script, write_site
from support.datasets import r2med_folder

from .conftest import DATASETS, HOSTILE, SYSTEMS


def value(site: Path, name: str) -> Any:
    """Return what a data file hands to the page."""
    match = re.fullmatch(r'pages\.data\("[\w/-]+", (".*")\);\n', (site / "data" / f"{name}.js").read_text(), re.DOTALL)
    assert match
    return json.loads(json.loads(match[1]))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_records_make_the_same_bytes(site: Path, records: Path, tmp_path: Path) -> None:
    assert files(make_board([records], tmp_path / "again").parent) == files(site)


def test_the_site_names_nothing_outside_of_itself(site: Path) -> None:
    for name in ("index.html", *(f"assets/{path.name}" for path in (site / "assets").iterdir())):
        addresses = re.findall(r"(?:https?:)?//\w[\w.]+", (site / name).read_text())
        assert set(addresses) <= {"http://www.w3.org"}
    page = (site / "index.html").read_text()
    assert "default-src 'none'; script-src 'self'" in page
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|style=", page)


def test_further_facts_of_a_stage_are_not_on_the_board(site: Path) -> None:
    """Their names can be any text."""
    assert not [file for file in site.rglob("*.js") if "a sentence of its own" in file.read_text()]


def test_only_the_owner_can_read_a_board_with_texts_of_own_data(site: Path, tmp_path: Path) -> None:
    data, store = r2med_folder(tmp_path / "mine"), Store(tmp_path / "store")
    evaluate("bm25", data, tmp_path / "results", store=store)
    folders = [
        make_board([tmp_path / "results"], tmp_path / str(texts), [data], texts=texts).parent for texts in (True, False)
    ]
    assert [bool(folder.stat().st_mode & 0o077) for folder in (*folders, site)] == [False, True, True]


def test_a_folder_that_is_no_board_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="is not a board"):
        write_site(tmp_path, [])
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_site_that_cannot_be_finished_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "board"
    write_site(folder, [("site", {"old": True})])
    before = files(tmp_path)

    def broken() -> Iterator[tuple[str, Any]]:
        yield "site", {"old": False}
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_site(folder, broken())
    assert files(tmp_path) == before


def test_a_newer_site_leaves_nothing_of_the_older_one(tmp_path: Path) -> None:
    folder = tmp_path / "board"
    write_site(folder, [("system/7", 1)])
    write_site(folder, [("site", 2)])
    assert [path.name for path in (folder / "data").rglob("*.js")] == ["site.js"]
    assert [path.name for path in tmp_path.iterdir()] == ["board"]


@pytest.mark.parametrize("text", ["</script>", "\u2028\u2029", '"\\\n\0', "\ud800 alone", "__proto__", HOSTILE])
def test_a_data_file_holds_any_text(text: str) -> None:
    content = data_script("x", {text: text}).decode()
    assert content.count("\n") == 1 and "\u2028" not in content
    assert json.loads(json.loads(content.removeprefix('pages.data("x", ').removesuffix(");\n"))) == {text: text}


def test_the_leaderboard_has_our_systems_and_every_published_row(site: Path) -> None:
    content = value(site, "site")
    assert {system["name"] for system in content["systems"]} == {*SYSTEMS, HOSTILE}
    assert len(content["published"]) == len(published())
    assert [each["name"] for each in content["sets"]] == ["R2MED", "demo"]
    numbers = dict(
        zip((each["name"] for each in content["sets"]), (each["datasets"] for each in content["sets"]), strict=True)
    )
    assert [content["datasets"][number]["name"] for number in numbers["demo"]] == list(DATASETS)


def test_only_systems_run_on_all_datasets_have_an_average_and_a_mark(site: Path) -> None:
    by_name = {system["name"]: system for system in value(site, "site")["systems"]}
    assert by_name[HOSTILE]["averages"] == [None, None]
    assert by_name[HOSTILE]["marks"] == [None, None]
    assert by_name["hyde(author) → bm25"]["marks"][1] == {"letters": "a", "better": 2, "worse": 0, "alike": 0}
    second = {"letters": "b", "better": 0, "worse": 1, "alike": 1}
    assert by_name["bm25"]["marks"] == by_name["bm25(scorer=lucene)"]["marks"] == [None, second]
    average = by_name["bm25"]["averages"][1]
    assert average["low"] < average["value"] < average["high"]


def rewritten(entry: Path, name: str, change: Callable[[Any], object]) -> Path:
    """Write a changed copy of an entry as a forger would, checksum included."""
    body = json.loads(entry.read_text())
    del body["checksum"]
    for record in body["records"]:
        change(record)
    path = entry.with_name(name)
    path.write_text(json.dumps({**body, "checksum": digest(body)}))
    return path


def test_a_bad_entry_is_reported_by_name_and_the_others_are_shown(
    records: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def only_recall(record: Any) -> None:
        record["system"] = "poor"
        for values in (record["mean"], *record["per_query"].values()):
            for name in [name for name in values if name != "R@10"]:
                del values[name]

    entry = tmp_path / "entries/ward.json"
    submit(["bm25"], entry, records)
    rewritten(entry, "another.json", lambda record: record["dataset"].update(fingerprint="f" * 32))
    (tmp_path / "entries/zz-cut.json").write_bytes(entry.read_bytes()[:300])
    poor = rewritten(entry, "poor.json", only_recall)
    entry.rename(entry.with_name("a-ward.json"))
    site = make_board((), tmp_path / "site", entries=tmp_path / "entries").parent
    assert [(each["name"], each["entry"]) for each in value(site, "site")["systems"]] == [
        ("bm25 (not verified)", "a-ward"),
        ("bm25 (another) (not verified)", "another"),  # on own/Biology: other data than those of the demo
    ]
    left_out = [line for line in caplog.messages if "is left out" in line]
    assert [line.split()[1] for line in left_out] == [
        *(str(entry.with_name(name)) for name in ("poor.json", "zz-cut.json")),
    ]
    assert f"{poor}: poor on demo/Biology: it has no nDCG@10, the main measure" in left_out[0]


def test_an_entry_under_a_name_of_the_benchmark_is_own_data_without_its_source(records: Path, tmp_path: Path) -> None:
    entry = tmp_path / "entries/ward.json"
    submit([next(records.glob("demo/Biology/bm25-*.json"))], entry)
    rewritten(entry, "ward.json", lambda record: record["dataset"].update(name="Biology"))
    content = value(make_board((), tmp_path / "site", entries=tmp_path / "entries").parent, "site")
    assert [each["name"] for each in content["sets"]] == ["R2MED", "own data"]
    [number] = content["sets"][1]["datasets"]
    assert content["datasets"][number]["name"] == "own/Biology"


@pytest.mark.parametrize("name", ["irds:vaswani", "/", "~", "../notes"])
def test_a_name_in_an_entry_is_neither_fetched_nor_used_as_a_path(
    name: str, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tmp_path / "entries/ward.json"
    submit([next(records.glob("demo/Biology/bm25-*.json"))], entry)
    rewritten(entry, "ward.json", lambda record: record["dataset"].update(name=name))
    loaded: list[str] = []
    monkeypatch.setattr("r2med.evaluation.records.local_datasets.load_dataset", loaded.append)
    if name == "~":  # no letter of a name
        with pytest.raises(UserError, match="the name '~' must have only letters"):
            make_board((), tmp_path / "site", entries=tmp_path / "entries")
    else:
        assert make_board((), tmp_path / "site", entries=tmp_path / "entries").is_file()
    assert loaded == []


def test_files_beside_an_entry_are_not_taken_for_its_run(records: Path, tmp_path: Path) -> None:
    entry = tmp_path / "entries/ward.json"
    submit(["bm25"], entry, records)
    (tmp_path / "entries/other.trec.gz").write_bytes(b"x")
    rewritten(entry, "ward.json", lambda record: record["run"].update(file="other.trec.gz"))
    assert make_board((), tmp_path / "site", entries=tmp_path / "entries").is_file()


@pytest.mark.parametrize("ending", [".trec.gz", ".generated.jsonl"])
def test_a_file_that_is_missing_beside_a_record_is_reported(
    ending: str, records: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(records / "demo/Biology", tmp_path / "results")
    [file] = (tmp_path / "results").glob(f"hyde*{ending}")
    file.unlink()
    make_board([tmp_path / "results"], tmp_path / "site")
    expected = (
        f"not in the explorer: {file} is missing: make it again with r2med run 'hyde(author) → bm25' --data demo/"
    )
    assert expected in caplog.text


def test_entries_of_others_are_shown_alone_or_beside_our_own_records(records: Path, tmp_path: Path) -> None:
    submit(["bm25"], tmp_path / "entries" / "ward.json", records)
    alone = make_board((), tmp_path / "alone", entries=tmp_path / "entries").parent
    assert [(each["name"], each["entry"]) for each in value(alone, "site")["systems"]] == [
        ("bm25 (not verified)", "ward")
    ]
    others = sorted(records.glob("demo/*/hyde*-??????????.json"))
    both = make_board(others, tmp_path / "both", entries=tmp_path / "entries").parent
    assert [each["entry"] for each in value(both, "site")["systems"]] == ["", "ward"]
    twice = make_board([records], tmp_path / "twice", entries=tmp_path / "entries").parent
    assert "bm25 (ward) (not verified)" in [each["name"] for each in value(twice, "site")["systems"]]


def test_every_group_of_datasets_has_a_tab_and_the_users_own_is_the_last() -> None:
    names = ["Biology", "mine", "demo/Biology", "SciFact", "NFCorpus", "BRIGHT-pony", "NanoSciFact", "mine+b"]
    assert dataset_sets(names) == {
        "R2MED": ["Biology"],
        "demo": ["demo/Biology"],
        "medical": ["SciFact", "NFCorpus"],
        "bright": ["BRIGHT-pony"],
        "nano": ["NanoSciFact"],
        "own data": ["mine", "mine+b"],
    }
