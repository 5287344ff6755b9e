"""What HTTP costs: `r2med serve` at 1, 16 and 64 clients against calling its searcher directly, in one run.

    python benchmarks/serve.py                              # bm25 over 60,000 made-up passages, bm25+minilm over 6,000
    python benchmarks/serve.py --retriever bm25 --documents 20000

The server is a process of its own, started by the command; clients keep their connections, ask one query of a dozen
words at a time, top 3, and speak bare HTTP so that they cost little. Direct calls search the same queries in this
process, one by one and, as the best that could be had, 64 together. All take turns and the best of each counts. Needs
the extra `models`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bm25 import make_texts

from r2med.data import load
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.server.served_corpus import ServedCorpus, open_served_corpus

TOPK, TOGETHER = 3, 64
DOCUMENTS = {"bm25": 60_000}
OTHERS = 6_000
"""Documents of retrievers that encode them first: a CPU does about a hundred a second."""


@dataclass(frozen=True)
class Speed:
    """How fast queries were answered."""

    per_second: float
    p50: float
    p99: float
    work: float
    """Milliseconds of CPU that the searching process spent on each query: steady on a machine that is shared."""

    @classmethod
    def of(cls, latencies: list[float], seconds: float, work: float, each: int = 1) -> Speed:
        middle, late = np.percentile(latencies, [50, 99])
        count = each * len(latencies)
        return cls(count / seconds, 1000 * float(middle), 1000 * float(late), 1000 * work / count)


def write_dataset(folder: Path, documents: int) -> list[str]:
    """Write a folder that the command can serve; return queries for it."""
    folder.mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w") as file:
        for number, text in enumerate(make_texts(documents, 150, seed=1)):
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
    queries = make_texts(512, 12, seed=2)
    (folder / "query.jsonl").write_text(json.dumps({"id": "0", "text": queries[0]}) + "\n")
    (folder / "qrels.jsonl").write_text(json.dumps({"q_id": "0", "p_id": "d0", "score": 1}) + "\n")
    return queries


def direct(served: ServedCorpus, queries: list[str], together: int, seconds: float) -> Speed:
    latencies: list[float] = []
    started, worked = time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) - started < seconds:
        at = len(latencies) * together % len(queries)
        served.search(queries[at : at + together], TOPK)
        latencies.append(time.perf_counter() - now)
    return Speed.of(latencies, time.perf_counter() - started, time.process_time() - worked, together)


def cpu_seconds(process: int) -> float:
    """Return what another process has worked so far, where the system tells."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def clients(server: int, port: int, queries: list[str], count: int, seconds: float) -> Speed:
    """Ask from many connections at a time, each the next question when it has its answer."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        at = number
        while (now := time.perf_counter()) < end:
            question = {"queries": [queries[at % len(queries)]], "topk": TOPK, "return_scores": True}
            body = json.dumps(question).encode()
            writer.write(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            latencies.append(time.perf_counter() - now)
            at += count
        writer.close()

    started, worked = time.perf_counter(), cpu_seconds(server)
    await asyncio.gather(*map(client, range(count)))
    return Speed.of(latencies, time.perf_counter() - started, cpu_seconds(server) - worked)


def measure(retriever: str, folder: Path, queries: list[str], options: argparse.Namespace) -> dict[str, Speed]:
    store = Store(os.environ["R2MED_HOME"])
    served = open_served_corpus(load(folder, store), retriever, Runtime(), store)  # indexed here, opened by the server
    command = [sys.executable, "-m", "r2med", "serve", str(folder), "--retriever", retriever, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split("/retrieve")[0].rpartition(":")[2])
        contenders: dict[str, Callable[[], Speed]] = {
            "direct, one by one": lambda: direct(served, queries, 1, options.seconds),
            f"direct, {TOGETHER} together": lambda: direct(served, queries, TOGETHER, options.seconds),
        }
        for count in options.clients:
            name = f"server, {count} client{'s' * (count > 1)}"
            contenders[name] = lambda count=count: asyncio.run(
                clients(server.pid, port, queries, count, options.seconds)
            )
        best: dict[str, Speed] = {}
        for _ in range(options.rounds):
            for name, work in contenders.items():
                speed = work()
                if name not in best or speed.per_second > best[name].per_second:
                    best[name] = speed
        server.send_signal(signal.SIGTERM)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--retriever", action="append", help="default: bm25 and bm25+minilm")
    parser.add_argument("--documents", type=int, help=f"default: 60,000 for bm25, {OTHERS:,} for others")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each contender's turn")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        os.environ["R2MED_HOME"] = str(Path(folder_name) / "home")
        for retriever in options.retriever or ["bm25", "bm25+minilm"]:
            documents = options.documents or DOCUMENTS.get(retriever, OTHERS)
            folder = Path(folder_name) / f"set-{documents}"
            queries = make_texts(512, 12, seed=2) if folder.exists() else write_dataset(folder, documents)
            best = measure(retriever, folder, queries, options)
            base = best["direct, one by one"].per_second
            print(f"\n{retriever}, {documents:,} documents, top {TOPK}")
            print(f"{'':22} {'queries/s':>10} {'× direct':>9} {'p50 ms':>8} {'p99 ms':>8} {'CPU ms':>8}")
            for name, speed in best.items():
                ratio = speed.per_second / base
                times = f"{speed.p50:8.2f} {speed.p99:8.2f} {speed.work:8.2f}"
                print(f"{name:22} {speed.per_second:10.1f} {ratio:9.2f} {times}", flush=True)


if __name__ == "__main__":
    main()
