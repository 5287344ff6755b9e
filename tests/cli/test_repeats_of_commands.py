"""Repeats in plans, answers and packs."""

import json
from pathlib import Path

import pytest

import r2med
from r2med import UserError
from r2med.data.dataset import Dataset
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.publication.site.answer_rows import answers_value
from r2med.publication.site.board_answers import read_board_answers
from support import chat_server as api
from support.chat_server import Exchange, Server, seeds
from support.facts import states
from support.records import collection
from support.records import record as ranking
from support.synthetic_answers import synthetic, write


def test_a_plan_has_the_calls_of_all_runs_and_says_what_is_deterministic(
    served: Server, data: Dataset, runtime: Runtime
) -> None:
    plan = r2med.plan(r2med.run, ["bm25", "hyde(m) → bm25"], data, repeats=3, out=None, setup=runtime)
    bm25, hyde = plan.rows
    assert (bm25.runs, hyde.runs) == ("deterministic: one run", "3 runs")
    assert [need.calls for need in hyde.needs] == [3 * len(data.queries), 0]
    assert hyde.needs[1] == bm25.needs[0], "the index is made once"


def test_readers_and_judges_of_answers_are_asked_anew(served: Server, runtime: Runtime, tmp_path: Path) -> None:
    async def reader(exchange: Exchange) -> None:
        await api.answer(json.dumps({"answer": f"It is gout {exchange.request.body['seed']}."}))(exchange)

    served.otherwise = reader
    out = tmp_path / "out"
    asking = {"conditions": "closed book", "form": "open", "out": out, "setup": runtime, "queries": 3}
    answered = r2med.answer("bm25", "m", "demo/Biology", repeats=2, **asking)
    assert [record.repeat for record in answered] == [0, 1] and all(record.varies for record in answered)
    assert len(served.requests) == 6 and len({*seeds(served)}) == 2
    assert len([*out.rglob("bm25-*.json")]) == 1, "bm25 does not vary"
    again = r2med.answer("bm25", "m", "demo/Biology", repeats=2, **asking)
    assert again.reused == 2 and len(served.requests) == 6
    collected = collect(results=out, kind="answers")
    assert len(collected.runs_of_all) == 2, "both are kept"
    board = read_board_answers([out], collect(results=out))
    assert [each.record.repeat for each in board] == [0], "the board has one row of their means"


def test_the_mean_of_answers_is_over_what_all_repeats_have(tmp_path: Path) -> None:
    for number in (0, 1):
        right = [float(number), 1.0 if number else None, 0.5]
        repeat = {"settings": {"repeat": 1} if number else {}, "key": str(number) * 32}
        write(synthetic({"closed book": right}).model_copy(update=repeat), tmp_path)
    board = collection([ranking("bm25", "Biology", [0.5] * 3)])
    [view] = answers_value(read_board_answers([tmp_path], board), board, ["Biology"])
    [row] = view["rows"]
    assert row["scores"]["closed book"]["accuracy"]["value"] == 0.5  # of the first and the last question


def test_a_pack_has_all_repeats(served: Server, data: Dataset, runtime: Runtime, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "run.r2pack"
    made = r2med.run("hyde(m) → bm25", data, repeats=2, out=out, setup=runtime).records
    manifest = r2med.pack(out, file, data=[data], results=out, setup=runtime)
    assert [record.system for record in manifest.records] == ["hyde(m) → bm25"] * 2
    asked = len(served.requests)
    elsewhere = Store(tmp_path / "elsewhere")
    done = r2med.unpack(file, tmp_path / "unpacked", store=elsewhere)
    assert all("--repeats 2" in command for command in done.commands)
    with Runtime(base_url=served.address, store=elsewhere) as other:
        again = r2med.run("hyde(m) → bm25", data, repeats=2, out=tmp_path / "unpacked", setup=other)
    assert [record.answers.mean for record in again.records] == [record.answers.mean for record in made]
    assert len(served.requests) == asked, "nothing is asked again"
    (first, *_) = (path for path in out.rglob("*.json") if Record.read(path).repeat == 0)
    first.unlink()
    with pytest.raises(UserError) as refused:
        r2med.pack(out, tmp_path / "half.r2pack", data=[data], results=out, setup=runtime)
    states(refused.value, "repeat 0", "missing")
