"""Files beside a record: no command uses one that is missing or was changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from r2med import UserError, load, pack, run, submit
from r2med.assessment.judgements.committee import pool
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.rankings import ranked_lists
from r2med.evaluation.records.relabelled import relabelled
from r2med.evaluation.running.run_export import export_runs
from r2med.evaluation.running.story import query_story
from r2med.foundation.store import Store
from r2med.publication.site.site import make_board

NAME = "demo/Biology"
SYSTEM = "hyde(author) → bm25"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    run(SYSTEM, NAME, out=out / "results", store=Store(out / "store"))
    return out


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "results", tmp_path / "results"))


def _overlay() -> Overlay:
    query = load(NAME).queries[0].id
    document = next(iter(load(NAME).corpus))[0]
    return Overlay("x", (OverlayLabel(dataset=NAME, query=query, document=document, grade=1, judge="j"),))


COMMANDS: dict[str, Callable[[Path], object]] = {
    "judge": lambda results: pool(collect(results=results), load(NAME), 10),
    "audit": lambda results: ranked_lists(next(iter(collect(results=results))), load(NAME)),
    "records export": lambda results: export_runs([], results.parent / "runs", results),
    "why": lambda results: query_story(next(iter(collect(results=results))).path, load(NAME).queries[0].id),
    "compare --overlay": lambda results: relabelled(collect(results=results), [_overlay()], {NAME: load(NAME)}),
    "pack": lambda results: pack([], results.parent / "x.r2pack", results=results),
    "submit": lambda results: submit([], results.parent / "entry.json", results),
}
OF_TEXTS = {
    "analyse": lambda results: next(iter(collect(results=results))).generated(),
    **{name: COMMANDS[name] for name in ("why", "pack", "submit")},
}
DAMAGES: dict[str, Callable[[Path], object]] = {
    "changed": lambda file: file.write_bytes(file.read_bytes()[:-1] + b"x"),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:50]),
    "missing": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_file_that_is_not_that_of_its_record_is_one_line(command: str, damage: str, results: Path) -> None:
    _one_line(COMMANDS[command], damage, results, "*.trec.gz")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", OF_TEXTS)
def test_generated_texts_that_are_not_those_of_their_record_are_one_line(
    command: str, damage: str, results: Path
) -> None:
    _one_line(OF_TEXTS[command], damage, results, "*.generated.jsonl")


def _one_line(command: Callable[[Path], object], damage: str, results: Path, name: str) -> None:
    [file] = results.rglob(name)
    DAMAGES[damage](file)
    with pytest.raises(UserError, match=rf"{file.name.replace('+', '.')} (is missing|was changed|is missing or was)"):
        command(results)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_board_never_shows_texts_that_are_not_those_of_the_record(
    damage: str, results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [file] = results.rglob("*.generated.jsonl")
    written = next(iter(collect(results=results))).generated()[load(NAME).queries[0].id]
    DAMAGES[damage](file)
    make_board([results], tmp_path / "site")
    assert f"not in the explorer: {file} " in caplog.text
    [first] = (tmp_path / "site/data/explorer").glob("*/q0.js")
    assert written[0][:40] not in first.read_text(encoding="utf-8")


@pytest.mark.parametrize("texts", [True, False])
def test_a_board_says_which_runs_are_missing_and_is_not_made_from_changed_ones(
    texts: bool, results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [file] = results.rglob("*.trec.gz")
    content = file.read_bytes()
    file.unlink()
    make_board([results], tmp_path / "site", texts=texts)
    assert caplog.text.count(f"not in the explorer: {file} is missing") == 1
    file.write_bytes(content + b"x")
    with pytest.raises(UserError, match="was changed after its record was written"):
        make_board([results], tmp_path / "site", texts=texts)
