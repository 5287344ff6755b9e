"""The thread that searches outlives whatever it is given."""

import asyncio

import pytest

from r2med.serve.thread import WorkThread


@pytest.mark.parametrize(
    ("raised", "seen"),
    [(ValueError("no"), ValueError), (StopIteration(), RuntimeError), (SystemExit(3), RuntimeError)],
)
def test_what_work_raises_is_told_and_the_next_is_done(raised, seen):
    def fail():
        raise raised

    async def run():
        thread = WorkThread("test")
        with pytest.raises(seen):
            await thread.run(fail)
        return await thread.run(lambda: 7)

    assert asyncio.run(run()) == 7
