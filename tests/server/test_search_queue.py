"""The queue before the search: it is bounded, searches requests together, and no request suffers for another."""

import asyncio

import pytest

from r2med.server.refusals import HTTPError
from r2med.server.search_queue import SearchQueue
from support.served_app import ScriptedSearch, until


def ids(results):
    return [[hit.id for hit in hits] for hits in results]


def run_with_closed_gate(body, max_waiting=100, batch=100):
    """Run `body(queue, search)` with the gate closed, so that whatever comes after the first request has to wait."""
    search = ScriptedSearch(gate_is_open=False)

    async def run():
        return await body(SearchQueue(search, max_waiting, batch), search)

    try:
        return asyncio.run(run()), search.searches
    finally:
        search.gate.set()


def submit(queue, *requests):
    return [asyncio.ensure_future(queue.search(queries, k)) for queries, k in requests]


def test_requests_that_wait_together_are_searched_together_and_each_gets_its_own_results():
    async def body(queue, search):
        first = submit(queue, (["a"], 2))
        await until(lambda: queue.is_searching)
        others = submit(queue, (["b", "c"], 2), (["d"], 2), (["e"], 2))
        await asyncio.sleep(0)
        search.gate.set()
        return await asyncio.gather(*first, *others)

    results, searches = run_with_closed_gate(body)
    assert searches == [(["a"], 2), (["b", "c", "d", "e"], 2)]
    assert [ids(each) for each in results] == [
        [["a-0", "a-1"]],
        [["b-0", "b-1"], ["c-0", "c-1"]],
        [["d-0", "d-1"]],
        [["e-0", "e-1"]],
    ]


def test_only_requests_for_equally_many_documents_are_searched_together_the_first_first():
    async def body(queue, search):
        first = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        others = submit(queue, (["b"], 3), (["c"], 1), (["d"], 3))
        await asyncio.sleep(0)
        search.gate.set()
        await asyncio.gather(*first, *others)

    assert run_with_closed_gate(body)[1] == [(["a"], 1), (["b", "d"], 3), (["c"], 1)]


def test_a_batch_has_its_size_but_a_larger_request_is_searched_whole():
    async def body(queue, search):
        first = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        others = submit(queue, (["b", "c", "d"], 1), (["e"], 1), (["f"], 1), (["g"], 1))
        await asyncio.sleep(0)
        search.gate.set()
        await asyncio.gather(*first, *others)

    searches = run_with_closed_gate(body, batch=2)[1]
    assert searches == [(["a"], 1), (["b", "c", "d"], 1), (["e", "f"], 1), (["g"], 1)]


def test_one_request_more_than_may_wait_is_refused_at_once():
    async def body(queue, search):
        first = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        waiting = submit(queue, (["b"], 1), (["c"], 1))
        await asyncio.sleep(0)
        with pytest.raises(HTTPError) as refusal:
            await queue.search(["d"], 1)
        search.gate.set()
        await asyncio.gather(*first, *waiting)
        assert ids(await queue.search(["d"], 1)) == [["d-0"]]  # there is room again
        return refusal.value

    refusal, searches = run_with_closed_gate(body, max_waiting=2)
    assert (refusal.status, refusal.headers) == (503, {"Retry-After": "1"})
    assert [queries for queries, _ in searches] == [["a"], ["b", "c"], ["d"]]


def test_a_request_that_is_cancelled_while_it_waits_is_not_searched_and_makes_room():
    async def body(queue, search):
        first = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        [leaving] = submit(queue, (["b"], 1))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        [staying] = submit(queue, (["c"], 1))
        await asyncio.sleep(0)
        search.gate.set()
        assert ids(await staying) == [["c-0"]]
        await asyncio.gather(*first)

    assert [queries for queries, _ in run_with_closed_gate(body, max_waiting=1)[1]] == [["a"], ["c"]]


def test_a_request_that_is_cancelled_during_its_search_harms_no_other():
    async def body(queue, search):
        [leaving] = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        leaving.cancel()
        [staying] = submit(queue, (["b"], 1))
        await asyncio.sleep(0)
        search.gate.set()
        return ids(await staying)

    assert run_with_closed_gate(body)[0] == [["b-0"]]


def test_a_request_whose_search_fails_fails_alone_and_the_queue_goes_on(caplog):
    async def body(queue, search):
        first = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        others = submit(queue, (["b"], 1), (["fail"], 1), (["c"], 1))
        await asyncio.sleep(0)
        search.gate.set()
        outcomes = await asyncio.gather(*first, *others, return_exceptions=True)
        return outcomes, ids(await queue.search(["d"], 1))

    (outcomes, after), _ = run_with_closed_gate(body)
    assert [ids(outcomes[index]) for index in (0, 1, 3)] == [[["a-0"]], [["b-0"]], [["c-0"]]]
    assert (outcomes[2].status, outcomes[2].detail) == (500, "the search failed; the server's log says why")
    assert after == [["d-0"]]
    assert [record.getMessage() for record in caplog.records] == ["a search failed: RuntimeError: secret internals"]


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(), SystemExit(3), KeyboardInterrupt()])
def test_whatever_a_search_raises_is_a_500_and_the_next_request_is_searched(error):
    async def run():
        queue = SearchQueue(ScriptedSearch(error=error), 100, 100)
        with pytest.raises(HTTPError, match="the search failed"):
            await queue.search(["fail"], 1)
        return ids(await queue.search(["a"], 1))

    assert asyncio.run(run()) == [["a-0"]]


def test_a_closed_queue_finishes_the_search_that_runs_and_refuses_all_others():
    async def body(queue, search):
        [running] = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        [waiting] = submit(queue, (["b"], 1))
        await asyncio.sleep(0)
        queue.close()
        [late] = submit(queue, (["c"], 1))
        refusals = await asyncio.gather(waiting, late, return_exceptions=True)
        search.gate.set()
        return ids(await running), [refusal.status for refusal in refusals]

    (results, statuses), searches = run_with_closed_gate(body)
    assert results == [["a-0"]]
    assert statuses == [503, 503]
    assert [queries for queries, _ in searches] == [["a"]]


def test_an_abandoned_search_is_not_waited_for():
    async def body(queue, search):
        [running] = submit(queue, (["a"], 1))
        await until(lambda: queue.is_searching)
        queue.close()
        queue.abandon()
        with pytest.raises(HTTPError, match="stopping"):
            await running
        return queue.is_searching

    assert run_with_closed_gate(body)[0] is True
