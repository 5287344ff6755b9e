"""`r2med audit` of a made-up dataset: seconds, CPU seconds and peak memory, and whether all planted copies are found.

    python benchmarks/audit.py                          # 60,000 documents of 150 words, 1,000 queries
    python benchmarks/audit.py --documents 1000000

A hundredth of the documents are copies of relevant ones: a third with other white space, a third in capitals, a third
with one other word. The audit is a command in a process of its own, once with a cold store and once with a warm one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bm25 import make_texts

WORDS, BATCH = 150, 10_000
RELEVANT = 3
"""Relevant documents of a query."""


def documents(count: int) -> Iterator[str]:
    for seed, start in enumerate(range(0, count, BATCH)):
        yield from make_texts(min(BATCH, count - start), WORDS, seed)


def copy_of(text: str, kind: int) -> str:
    words = text.split()
    if kind == 2:
        words[len(words) // 2] = "altered"
    return "  ".join(words) if kind == 0 else text.upper() if kind == 1 else " ".join(words)


def write_dataset(folder: Path, count: int, queries: int) -> int:
    """Write a dataset in R2MED's layout, and return the number of planted copies."""
    planted = count // 100
    relevant = queries * RELEVANT
    texts: list[str] = []
    with (folder / "corpus.jsonl").open("w") as corpus:
        made = documents(count - planted)
        for number, text in enumerate(islice(made, relevant)):
            texts.append(text)
            corpus.write(json.dumps({"id": f"r{number}", "text": text}) + "\n")
        for number, text in enumerate(made):
            corpus.write(json.dumps({"id": f"x{number}", "text": text}) + "\n")
        for number in range(planted):
            copied = copy_of(texts[number % relevant], number % RELEVANT)
            corpus.write(json.dumps({"id": f"c{number}", "text": copied}) + "\n")
    asked = make_texts(queries, 60, 1_000_000)
    with (folder / "query.jsonl").open("w") as file:
        file.writelines(json.dumps({"id": f"q{n}", "text": text}) + "\n" for n, text in enumerate(asked))
    with (folder / "qrels.jsonl").open("w") as file:
        for number in range(relevant):
            row = {"q_id": f"q{number // RELEVANT}", "p_id": f"r{number}", "score": 1}
            file.write(json.dumps(row) + "\n")
    return planted


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--documents", type=int, default=60_000)
    words.add_argument("--queries", type=int, default=1_000)
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "made-up"
        folder.mkdir()
        planted = write_dataset(folder, given.documents, given.queries)
        for store in ("cold", "warm"):
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-m", "r2med", "audit", str(folder), "--json"]
            home = {**os.environ, "R2MED_HOME": str(Path(scratch) / "store")}
            done = subprocess.run(command, env=home, cwd=scratch, capture_output=True, text=True)
            wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            finding = next(f for f in json.loads(done.stdout)["findings"] if f["id"] == "unlabelled-copies")
            print(
                f"{given.documents:,} documents, {store} store: {wall:.1f} s, {cpu:.1f} CPU s, peak "
                f"{after.ru_maxrss / 1024:,.0f} MiB; {finding['numbers']['copies']:,} of {planted:,} copies found"
            )


if __name__ == "__main__":
    main()
