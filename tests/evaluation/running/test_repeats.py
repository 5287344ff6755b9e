"""Repeats: each asks LLMs and shuffles anew, has its own record, and is paid for once."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import r2med
from r2med import System
from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.results import DETERMINISTIC, ONE_RUN
from r2med.evaluation.running.run_page import run_page
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, depth_field
from r2med.foundation.store import Store
from r2med.systems.rerank.reranking import Reranked, reranked
from r2med.systems.retrieve.bm25.bm25_retriever import BM25
from r2med.systems.retrieve.retriever import SearchQuery
from support import chat_server as api
from support.chat_server import Server, by_seed, seeds
from support.facts import states


def scripted(tmp_path: Path, answer: str) -> Runtime:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"when": [], "answer": answer}) + "\n")
    return Runtime(store=Store(tmp_path / "store"), model_paths=(("script", script),))


def test_each_repeat_asks_anew_and_has_its_own_record(
    served: Server, data: Dataset, runtime: Runtime, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    results = r2med.run("hyde(m) → bm25", data, repeats=3, out=out, setup=runtime)
    (row,) = results.rows
    queries = len(data.queries)
    assert [record.repeat for record in row.records] == [0, 1, 2]
    assert [record.settings.get("repeat") for record in row.records] == [None, 1, 2]
    assert len(served.requests) == 3 * queries and len({*seeds(served)}) == 3
    assert len({record.settings["generations"] for record in row.records}) == 3
    assert len({record.seeds["expand llm"] for record in row.records}) == 3
    assert {record.seeds["expand llm"] for record in row.records} == {*seeds(served)}
    files = [path for path in out.rglob("*.json") if ".traces" not in path.name]
    assert sorted(Record.read(path).repeat for path in files) == [0, 1, 2]
    mean = sum(record.mean["nDCG@10"] for record in row.records) / 3
    assert row.scores() == [pytest.approx(mean)]
    again = r2med.run("hyde(m) → bm25", data, repeats=4, out=out, setup=runtime)
    assert len(served.requests) == 4 * queries, "only the new repeat is asked"
    assert again.reused == 3


def test_repeat_0_is_the_single_run_of_today(served: Server, data: Dataset, runtime: Runtime, tmp_path: Path) -> None:
    alone = r2med.evaluate(System.parse("hyde(m) → bm25", runtime), data)
    first = r2med.run("hyde(m) → bm25", data, repeats=2, out=None, setup=runtime).records[0]
    assert (first.key, first.mean, first.seeds) == (alone.key, alone.mean, {"expand llm": 42})
    assert seeds(served)[: len(data.queries)] == [42] * len(data.queries)


def test_no_repeat_has_the_seed_of_another_sample(served: Server, data: Dataset, runtime: Runtime) -> None:
    r2med.run("hyde(m, samples=4) → bm25", data, repeats=4, out=None, setup=runtime)
    assert len({*seeds(served)}) == 16


def test_a_run_that_stopped_goes_on_and_pays_nothing_twice(
    served: Server, data: Dataset, runtime: Runtime, tmp_path: Path
) -> None:
    system = System.parse("hyde(m) → bm25", runtime)
    system.in_repeat(1).expand(data)  # then it was killed, before its record was written
    asked = len(served.requests)
    r2med.run(system, data, repeats=2, out=tmp_path / "out", setup=runtime)
    assert asked == len(data.queries) and len(served.requests) == 2 * asked
    assert max(served.served.values()) == 2, "each question once in each repeat"


def test_shuffles_differ_between_repeats_and_are_the_same_when_run_again(tmp_path: Path, data: Dataset) -> None:
    runtime = scripted(tmp_path, "[1]: 5, [2]: 3, [3]: 1")
    system = System.parse("bm25 → groupwise(script, size=3)@9", runtime)
    assert system.varies, "a group is another one in each repeat"
    outcomes = [system.in_repeat(number).run(data, 9) for number in (0, 1, 1)]
    one, other, again = (list(outcome.run.id_lists()) for outcome in outcomes)
    assert one != other and other == again


class Sampling(Stage, kind="rerank"):
    """Order the candidates by chance, with a model that is slow to load."""

    name: str = "sampling"
    depth: int = depth_field(3)
    loaded: ClassVar[list[object]] = []

    def varies(self, runtime: Runtime) -> bool:
        return True

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        return {**self.settings(), "repeat": runtime.setup.repeat}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, runtime: Runtime) -> Reranked:
        runtime.part((self, "model"), lambda: self.loaded.append(object()))
        chance = np.random.default_rng(runtime.setup.repeat)
        return Reranked(reranked(run, self.depth, [chance.random(min(self.depth, int(count))) for count in run.found]))


def test_a_model_of_ones_own_is_loaded_once_for_all_repeats(data: Dataset, runtime: Runtime) -> None:
    Sampling.loaded.clear()
    results = r2med.run(System(BM25(), None, (Sampling(),), runtime), data, repeats=3, out=None, setup=runtime)
    assert len(results.records) == 3 and len({record.key for record in results.records}) == 3
    assert len(Sampling.loaded) == 1


@pytest.mark.parametrize(
    ("spec", "varies"),
    [
        ("bm25", False),
        ("rm3 → bm25", False),
        ("hyde(author) → bm25", False),
        ("hyde(script) → bm25", False),
        ("hyde(o3-mini) → bm25", True),
        ("bm25 → listwise(script)", False),
        ("bm25 → listwise(o3-mini, temperature=0)", True),
        ("bm25 → groupwise(script)", True),
        ("bm25 → groupwise(script, groups=sorted)", False),
        ("bm25 → setwise(script, order=random)", True),
        ("bm25 → setwise(script, order=heap)", False),
        ("agent(script, calls=tags)", False),
        ("agent(o3-mini)", True),
        ("search-r1(script) → bm25", False),
        ("search-r1(script, remote=http://127.0.0.1:9/retrieve) → bm25", True),
        ("bm25+[bm25 → listwise(o3-mini)@5]", True),
    ],
)
def test_a_system_varies_if_a_stage_asks_a_served_llm_or_a_server_or_shuffles(
    spec: str, varies: bool, tmp_path: Path
) -> None:
    assert System.parse(spec, scripted(tmp_path, "x")).varies is varies


def test_a_local_llm_varies_unless_it_takes_the_likeliest_token(tmp_path: Path) -> None:
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"GGUF")
    runtime = Runtime(store=Store(tmp_path / "store"), model_paths=(("tiny", weights),))
    at_zero, warm = (
        System.parse(f"bm25 → listwise(tiny, temperature={temperature})", runtime) for temperature in (0, 1)
    )
    assert not at_zero.varies and warm.varies


def test_a_system_that_does_not_vary_is_run_once_and_says_so(tmp_path: Path, data: Dataset) -> None:
    runtime = scripted(tmp_path, "an answer")
    results = r2med.run(["bm25", "hyde(script) → bm25"], data, repeats=5, out=tmp_path / "out", setup=runtime)
    assert [len(row.records) for row in results.rows] == [1, 1]
    assert [stage.varies for record in results.records for stage in record.stages] == [False] * 3
    assert [row[-3] for row in results.table().rows] == [DETERMINISTIC] * 2
    assert r2med.evaluate(System.parse("bm25", runtime).in_repeat(3), data).repeat == 0


def test_a_single_run_of_a_system_that_varies_is_marked(data: Dataset, runtime: Runtime, tmp_path: Path) -> None:
    once = r2med.run(["bm25", "hyde(m) → bm25"], data, out=None, setup=runtime)
    assert [row[-3] for row in once.table().rows] == [DETERMINISTIC, ONE_RUN]
    often = r2med.run(["bm25", "hyde(m) → bm25"], data, repeats=3, out=None, setup=runtime)
    assert [row[-3] for row in often.table().rows] == [DETERMINISTIC, "3"]
    tables = [part for section in run_page(often, tmp_path, demo=False).sections for part in section.parts]
    heads = [[column.head for column in part.columns] for part in tables if hasattr(part, "columns")]
    assert ["each run", "repeat 0", "repeat 1", "repeat 2", "SD"] in heads


def test_failed_tries_are_replaced_within_their_repeat_only(
    served: Server, data: Dataset, runtime: Runtime, tmp_path: Path
) -> None:
    served.script = [api.refuse(422)]  # the first question of repeat 0
    first = r2med.run("hyde(m) → bm25", data, repeats=2, out=tmp_path / "out", setup=runtime)
    assert [record.failures for record in first.records] == [1, 0]
    r2med.run("hyde(m) → bm25", data, repeats=2, out=tmp_path / "out", setup=runtime)
    records = [Record.read(path) for path in (tmp_path / "out").rglob("*.json")]
    assert sorted((record.repeat, record.failures) for record in records) == [(0, 0), (1, 0)]


def test_an_error_in_a_later_repeat_keeps_the_earlier_ones(
    served: Server, data: Dataset, runtime: Runtime, tmp_path: Path
) -> None:
    served.script = [by_seed] * len(data.queries) + [api.refuse(401)] * 99
    results = r2med.run("hyde(m) → bm25", data, repeats=2, out=tmp_path / "out", setup=runtime)
    (row,) = results.rows
    assert len(row.records) == 1 and not results.complete
    states(row.errors[0], "repeat 1", "401")
