"""Rerankers behind an API: no pair is sent twice, also after a kill, at another depth and in a run that starts over."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.data.runs.run import Run
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import stage_of
from r2med.foundation.store import Store
from r2med.systems.rerank import pair_scores
from r2med.systems.rerank.reranking import Reranked
from r2med.systems.retrieve.retriever import SearchQuery
from support import rerank_server as api
from support.by_day import some_by_day
from support.processes import PATIENCE, started, wait_for
from support.ready import ready_reranker
from support.rerank_server import Server, score

QUERIES = [Query(f"q{number}", f"question {number}") for number in range(12)]
DOCUMENTS = [(f"d{number}", f"document {number}") for number in range(40)]
DATA = Dataset("tiny", QUERIES, Corpus.of(DOCUMENTS), Qrels({}))
FOUND = (np.arange(40, dtype=np.int32), np.arange(40, 0, -1, dtype=np.float32))
RUN = Run.ranked([query.id for query in QUERIES], [FOUND] * 12, DATA.corpus)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VLLM", "TEI"):
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with api.serve("tei") as running:
        yield running


def rerank(address: str, store: Store, spec: str = "tei:some/model", depth: int = 40) -> Reranked:
    with Runtime(base_url=address, store=store, concurrency=4, first_wait=0.001) as runtime:
        reranker = ready_reranker(f"{spec}@{depth}", runtime)
        return reranker.rerank(DATA, [SearchQuery(query) for query in QUERIES], RUN)


def order(query: Query, depth: int = 40) -> list[str]:
    """Return the documents as the server's scores order them."""
    best = sorted(DOCUMENTS[:depth], key=lambda document: -np.float32(score(query.text, document[1])))
    return [name for name, _ in best] + [name for name, _ in DOCUMENTS[depth:]]


def ranked(found: Reranked) -> list[list[str]]:
    return [DATA.corpus.ids(rows) for rows in found.run.rows]


@pytest.mark.parametrize("name", ["vllm", "vllm-score", "tei"])
def test_candidates_are_ordered_by_the_server_s_scores(name: str, home: Path) -> None:
    with api.serve(name) as server:
        found = rerank(server.address, Store(home), f"{name}:some/model", 30)
    assert ranked(found) == [order(query, 30) for query in QUERIES]
    scores = sorted((np.float32(score(QUERIES[0].text, text)) for _, text in DOCUMENTS[:30]), reverse=True)
    assert found.run.scores[0][:30].tolist() == scores
    assert (found.cost.texts, found.cost.unpriced, found.cost.dollars) == (360, 0, 0)


def test_another_depth_sends_only_new_pairs_and_a_run_that_starts_over_sends_nothing(
    server: Server, home: Path
) -> None:
    first = rerank(server.address, Store(home), depth=10)
    rerank(server.address, Store(home), depth=40)
    assert set(server.served.values()) == {1} and len(server.served) == 480
    count = len(server.requests)
    again = rerank(server.address, Store(home).with_policy("fresh"), depth=10)
    assert len(server.requests) == count
    assert (ranked(again), again.cost) == (ranked(first), first.cost), "paid scores are used even by --fresh"


def test_the_documents_of_a_query_are_not_divided_between_blocks(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_scores, "PAIRS_AT_ONCE", 30)
    rerank(server.address, Store(home), depth=20)
    assert [len(request.body["texts"]) for request in server.requests] == [20] * 12


def test_an_error_keeps_what_was_scored(server: Server, home: Path) -> None:
    server.script = [api.answer()] * 4 + [api.refuse(424)] * 99
    with pytest.raises(UserError, match="HTTP 424"):
        rerank(server.address, Store(home))
    server.script = []
    found = rerank(server.address, Store(home))
    assert ranked(found) == [order(query) for query in QUERIES]
    assert set(server.served.values()) == {1}


def test_no_server_is_one_line(home: Path) -> None:
    with pytest.raises(UserError, match="give its address with"):
        rerank("", Store(home))


def planned(spec: str, **settings: Any) -> Needs:
    [call] = parse_stage(spec)
    sizes = [Size(10, 5000, 200, 400), Size(5, 20, 200, 400)]
    first, second = (stage_of(call, "rerank").needs(size, Runtime(**settings))[0] for size in sizes)
    return first + second


def test_a_plan_says_the_price_and_what_is_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COHERE", "VOYAGE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    plan = planned("voyage-rerank-2.5@100")
    assert (plan.pairs, plan.read, plan.dollars) == (1100, 1100 * 600, pytest.approx(0.033))
    assert (plan.fetch, plan.missing) == (0, "VOYAGE_API_KEY is not set; export it before the run")
    assert planned("cohere-rerank:v3.5@100").dollars is None
    assert "give its address" in planned("vllm:some/model@100").missing
    served = planned("vllm:some/model@100", base_url="http://127.0.0.1:8000/v1")
    assert (served.pairs, served.missing) == (1100, "")


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from r2med.foundation.store import Store
from systems.rerank.test_cross_api import rerank
rerank(sys.argv[1], Store(Path(sys.argv[2])))
"""


@pytest.mark.parametrize("number", some_by_day([signal.SIGKILL, signal.SIGINT], 2))
def test_a_killed_run_continues_and_sends_nothing_twice(server: Server, home: Path, number: signal.Signals) -> None:
    server.otherwise = api.answer(delay=0.05)
    tests = str(Path(__file__).parents[2])
    with started(["-c", CHILD, server.address, home, tests]) as first:
        wait_for(lambda: len(server.served) >= 100)
        server.otherwise = api.hang  # what is under way now is lost, and all that is lost
        # Four requests hang: the answers of all others have arrived, and were saved before these were sent.
        wait_for(lambda: len(server.requests) == server.answered + 4 and server.hanging == 4)
        first.send_signal(number)
        first.communicate(timeout=PATIENCE)
    assert first.returncode != 0
    before = dict(server.served)
    server.otherwise = None
    assert ranked(rerank(server.address, Store(home))) == [order(query) for query in QUERIES]
    assert 100 <= len(before) < 480 and len(server.served) == 480 and set(server.served.values()) == {1}
