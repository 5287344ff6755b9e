"""Asking speed: our client (journal, retries, cleaning, counting) against a bare loop with OpenAI's SDK, in one run.

    python benchmarks/llm.py                       # 64 at once, a scripted server that takes 50 ms an answer
    python benchmarks/llm.py --latency 0 --requests 2000

Same server (a process of its own), same questions for all; rounds alternate and the best of each counts. The
bare loops keep nothing and survive nothing; the one that does not stream saves the parsing of chunks, too. The aim is a
ratio of 0.9 to the one that streams, as we do.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.chat import ChatRequest, Generation, Message
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.llm.openai_protocol import request_body

CARD = LLMCard(name="bench/model", model="bench/model")
TESTS = Path(__file__).parents[1] / "tests"


async def bare(address: str, questions: list[dict[str, Any]], concurrency: int) -> None:
    """What one would write in ten lines."""
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=address, max_retries=0) as client:
        waiting = iter(questions)

        async def worker() -> None:
            for question in waiting:
                reply: Any = await client.chat.completions.create(**question)
                if question["stream"]:
                    text = "".join([c.choices[0].delta.content or "" async for c in reply if c.choices])
                else:
                    text = reply.choices[0].message.content
                assert text.startswith("A passage")

        await asyncio.gather(*(worker() for _ in range(concurrency)))


def ours(address: str, requests: list[ChatRequest], concurrency: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        chat = open_chat(CARD, Runtime(base_url=address, concurrency=concurrency, store=Store(folder)))
        answers = chat.complete(requests)
    assert all(isinstance(answer, Generation) for answer in answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--pieces", type=int, default=8, help="chunks that an answer is streamed in")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    settings = ["--latency", str(options.latency), "--pieces", str(options.pieces)]
    command, pipe = [sys.executable, "-m", "support.chat_server", *settings], subprocess.PIPE
    with subprocess.Popen(command, cwd=TESTS, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        address = server.stdout.readline().strip()
        system = Message("system", "You are a helpful assistant.")
        requests = [
            ChatRequest((system, Message("user", f"question {i}: " + "word " * 200)), sampling_of(CARD))
            for i in range(options.requests)
        ]
        streamed = [request_body(CARD, r) | {"stream_options": {"include_usage": True}} for r in requests]
        whole = [request_body(CARD, r) | {"stream": False} for r in requests]
        contenders: dict[str, Callable[[], None]] = {
            "bare loop": lambda: asyncio.run(bare(address, streamed, options.concurrency)),
            "bare loop, whole": lambda: asyncio.run(bare(address, whole, options.concurrency)),
            "r2med": lambda: ours(address, requests, options.concurrency),
        }
        best = dict.fromkeys(contenders, math.inf)
        work = dict.fromkeys(contenders, math.inf)  # seconds of this process's CPU: steady on a machine that is shared
        for _ in range(options.rounds):
            for name, run in contenders.items():
                started, worked = time.perf_counter(), time.process_time()
                run()
                best[name] = min(best[name], time.perf_counter() - started)
                work[name] = min(work[name], time.process_time() - worked)
        server.stdin.close()
    for name, seconds in best.items():
        cpu = work[name] / options.requests * 1000
        print(f"{name:<17} {options.requests / seconds:6.0f} answers/s  {cpu:5.2f} ms of CPU each")
    print(f"ratio {best['bare loop'] / best['r2med']:.2f} (aim: at least 0.9)", end=", ")
    print(f"{best['bare loop, whole'] / best['r2med']:.2f} to the loop that does not stream")


if __name__ == "__main__":
    main()
