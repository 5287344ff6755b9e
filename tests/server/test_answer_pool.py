"""The threads of answers: work is stopped at its next step when nobody waits any more, and by a stop of the server."""

import asyncio
import threading

import pytest

from r2med.foundation.engine.reporting import Reporter
from r2med.server.answer_pool import AnswerPool, StoppedError
from r2med.server.refusals import HTTPError
from support.served_app import until


class Steps:
    """Work of many steps, each of which waits for the test."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.ended: BaseException | None = None
        self.begun = threading.Event()

    def __call__(self) -> None:
        reporter = Reporter("answers", 100)
        self.begun.set()
        try:
            for _ in range(100):
                self.gate.wait(60)
                reporter.advance(1)
        except BaseException as error:
            self.ended = error
            raise


def test_work_that_is_late_ends_with_its_next_step():
    async def check():
        pool, steps = AnswerPool(1), Steps()
        with pytest.raises(TimeoutError):
            await pool.run(steps, 0.05)
        assert pool.is_busy  # the thread is still at its step
        steps.gate.set()
        await until(lambda: not pool.is_busy)
        assert isinstance(steps.ended, StoppedError)

    asyncio.run(check())


def test_work_whose_client_is_gone_ends_with_its_next_step():
    async def check():
        pool, steps = AnswerPool(1), Steps()
        task = asyncio.create_task(pool.run(steps, 60))
        await until(steps.begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        steps.gate.set()
        await until(lambda: not pool.is_busy)
        assert isinstance(steps.ended, StoppedError)

    asyncio.run(check())


def test_a_stop_refuses_new_questions_at_once_and_those_under_way_after_the_grace():
    async def check():
        pool, steps = AnswerPool(2), Steps()
        task = asyncio.create_task(pool.run(steps, 60))
        await until(steps.begun.is_set)
        pool.close()
        with pytest.raises(HTTPError, match="stopping"):
            await pool.run(lambda: None, 60)
        assert not task.done()
        pool.abandon()
        with pytest.raises(HTTPError, match="stopping"):
            await task
        steps.gate.set()
        await until(lambda: not pool.is_busy)

    asyncio.run(check())
