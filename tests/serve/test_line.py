"""The line before the search: bounded, searched together, and nobody suffers for another."""

import asyncio

import pytest

from r2med.serve.line import Line
from r2med.serve.refusals import Refused
from support.shelves import Scripted, until


def ids(found):
    return [[hit.id for hit in hits] for hits in found]


def in_line(body, waiting=100, batch=100):
    """Run `body(line, searcher)` with the gate shut, so that whoever comes after the first has to wait."""
    searcher = Scripted(gate=True)

    async def run():
        return await body(Line(searcher.find, waiting, batch), searcher)

    try:
        return asyncio.run(run()), searcher.searches
    finally:
        searcher.gate.set()


def come(line, *requests):
    return [asyncio.ensure_future(line.search(texts, k)) for texts, k in requests]


def test_those_who_wait_together_are_searched_together_and_get_each_their_own():
    async def body(line, searcher):
        first = come(line, (["a"], 2))
        await until(lambda: line.is_searching)
        others = come(line, (["b", "c"], 2), (["d"], 2), (["e"], 2))
        await asyncio.sleep(0)
        searcher.gate.set()
        return await asyncio.gather(*first, *others)

    found, searches = in_line(body)
    assert searches == [(["a"], 2), (["b", "c", "d", "e"], 2)]
    assert [ids(each) for each in found] == [
        [["a-0", "a-1"]],
        [["b-0", "b-1"], ["c-0", "c-1"]],
        [["d-0", "d-1"]],
        [["e-0", "e-1"]],
    ]


def test_only_those_who_want_as_many_documents_are_searched_together_the_first_first():
    async def body(line, searcher):
        first = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        others = come(line, (["b"], 3), (["c"], 1), (["d"], 3))
        await asyncio.sleep(0)
        searcher.gate.set()
        await asyncio.gather(*first, *others)

    assert in_line(body)[1] == [(["a"], 1), (["b", "d"], 3), (["c"], 1)]


def test_a_batch_has_its_size_but_a_larger_request_is_searched_whole():
    async def body(line, searcher):
        first = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        others = come(line, (["b", "c", "d"], 1), (["e"], 1), (["f"], 1), (["g"], 1))
        await asyncio.sleep(0)
        searcher.gate.set()
        await asyncio.gather(*first, *others)

    assert in_line(body, batch=2)[1] == [(["a"], 1), (["b", "c", "d"], 1), (["e", "f"], 1), (["g"], 1)]


def test_one_more_than_may_wait_is_sent_away_at_once():
    async def body(line, searcher):
        first = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        waiting = come(line, (["b"], 1), (["c"], 1))
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refusal:
            await line.search(["d"], 1)
        searcher.gate.set()
        await asyncio.gather(*first, *waiting)
        assert ids(await line.search(["d"], 1)) == [["d-0"]]  # there is room again
        return refusal.value

    refusal, searches = in_line(body, waiting=2)
    assert (refusal.status, refusal.headers) == (503, {"Retry-After": "1"})
    assert [texts for texts, _ in searches] == [["a"], ["b", "c"], ["d"]]


def test_work_of_one_who_left_is_not_done_and_makes_room():
    async def body(line, searcher):
        first = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        [leaving] = come(line, (["b"], 1))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        [staying] = come(line, (["c"], 1))
        await asyncio.sleep(0)
        searcher.gate.set()
        assert ids(await staying) == [["c-0"]]
        await asyncio.gather(*first)

    assert [texts for texts, _ in in_line(body, waiting=1)[1]] == [["a"], ["c"]]


def test_one_who_leaves_during_the_search_harms_nobody():
    async def body(line, searcher):
        [leaving] = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        leaving.cancel()
        [staying] = come(line, (["b"], 1))
        await asyncio.sleep(0)
        searcher.gate.set()
        return ids(await staying)

    assert in_line(body)[0] == [["b-0"]]


def test_a_search_that_fails_fails_alone_and_the_line_goes_on(caplog):
    async def body(line, searcher):
        first = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        others = come(line, (["b"], 1), (["fail"], 1), (["c"], 1))
        await asyncio.sleep(0)
        searcher.gate.set()
        outcomes = await asyncio.gather(*first, *others, return_exceptions=True)
        return outcomes, ids(await line.search(["d"], 1))

    (outcomes, after), _ = in_line(body)
    assert [ids(outcomes[place]) for place in (0, 1, 3)] == [[["a-0"]], [["b-0"]], [["c-0"]]]
    assert (outcomes[2].status, outcomes[2].line) == (500, "the search failed; the server's log says why")
    assert after == [["d-0"]]
    assert [record.getMessage() for record in caplog.records] == ["a search failed: RuntimeError: secret internals"]


def test_closed_it_finishes_what_runs_and_sends_the_others_away():
    async def body(line, searcher):
        [running] = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        [waiting] = come(line, (["b"], 1))
        await asyncio.sleep(0)
        line.close()
        [late] = come(line, (["c"], 1))
        refusals = await asyncio.gather(waiting, late, return_exceptions=True)
        searcher.gate.set()
        return ids(await running), [refusal.status for refusal in refusals], line.is_searching

    (found, statuses, _), searches = in_line(body)
    assert found == [["a-0"]]
    assert statuses == [503, 503]
    assert [texts for texts, _ in searches] == [["a"]]


def test_abandoned_it_waits_for_nothing():
    async def body(line, searcher):
        [running] = come(line, (["a"], 1))
        await until(lambda: line.is_searching)
        line.close()
        line.abandon()
        with pytest.raises(Refused, match="stopping"):
            await running
        return line.is_searching

    assert in_line(body)[0] is True
