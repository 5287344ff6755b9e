"""Building a benchmark apart from LLM time: chunks, duplicates, candidates, dataset; seconds and peak memory of each.

    python benchmarks/build.py                          # 2,000 questions, pages for 100,000 chunks
    python benchmarks/build.py --duplicates 1000000     # MinHash alone, over a million chunks

Texts are made up: a twentieth of the chunks of the second form repeats another exactly, a twentieth nearly. The
committee is BM25 in two forms: what encoding by a dense member takes is told by benchmarks/encode.py.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from bm25 import make_texts

from r2med.construction.build_plan import BuildPlan
from r2med.construction.items import Judgement, Rejected
from r2med.construction.pipeline import BuildFolder
from r2med.construction.publish.dataset_folder import write_output
from r2med.construction.step import Step, StepWork, Streams
from r2med.construction.steps.duplicates import DropDuplicates
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store

WORDS, BATCH = 48, 10_000
"""Words of a text: about 128 tokens, since invented words are long. Texts that are made together."""

PLAN = """
name = "made-up"
steps = [
  "read-table(questions.jsonl)",
  "read-wikipedia(pages.jsonl)",
  "chunk",
  "drop-duplicates",
  "mine(committee=bm25+bm25(scorer=lucene), views=query:answer, depth=20)",
]
"""


class MadeUpJudge(Step, kind="build"):
    """Give scores at random, so that there is something to write."""

    reads = ("candidates",)
    writes = "judgements"
    name: str = "made-up-judge"

    def run(self, streams: Streams, work: StepWork) -> Iterator[Judgement]:
        random = np.random.default_rng(0)
        for each in streams.candidates():
            relevance, support = random.integers(0, 6, 2).tolist()
            why = "It says something of the kind. " * 5
            yield Judgement(
                question=each.question, chunk=each.chunk, judge="x", relevance=relevance, support=support, rationale=why
            )


def texts(count: int, words: int = WORDS) -> Iterator[str]:
    for seed, start in enumerate(range(0, count, BATCH)):
        yield from make_texts(min(BATCH, count - start), words, seed)


def megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def whole(questions: int, chunks: int, folder: Path) -> None:
    with (folder / "pages.jsonl").open("w") as pages:
        parts: list[str] = []
        for number, text in enumerate(texts(chunks), 1):
            parts.append(re.sub(r"\. \w|^\w", lambda start: start[0].upper(), text) + ".")
            if number % 10 == 0:
                pages.write(
                    json.dumps({"id": f"page{number}", "title": f"Page {number}", "text": " ".join(parts)}) + "\n"
                )
                parts = []
    with (folder / "questions.jsonl").open("w") as rows:
        for number, text in enumerate(texts(questions)):
            answer = " ".join(text.split()[:4])
            link = f"https://en.wikipedia.org/wiki/Page_{10 * (1 + number % (chunks // 10))}"
            rows.write(json.dumps({"id": f"q{number}", "question": text, "answer": answer, "links": link}) + "\n")
    (folder / "plan.toml").write_text(PLAN)
    began, clock = time.perf_counter(), [("", time.perf_counter())]
    read, setup = BuildPlan.read(folder / "plan.toml"), Runtime(store=Store(folder / "store"))
    build = BuildFolder(replace(read, steps=(*read.steps, MadeUpJudge())), folder / "out")
    done = build.run(setup, lambda step: clock.append((step, time.perf_counter())))
    ends = [*(moment for _, moment in clock[2:]), time.perf_counter()]
    for each, (_, start), end in zip(done, clock[1:], ends, strict=True):
        print(f"{each.step:75} {end - start:7.1f} s  {each.kept:9,} items")
    start = time.perf_counter()
    write_output(build, setup)
    print(f"{'dataset and datasheet':75} {time.perf_counter() - start:7.1f} s")
    print(f"{'all':75} {time.perf_counter() - began:7.1f} s  {megabytes():9,} MB at most")
    print(json.dumps(done[-2].facts["pool"]["members"]))


def duplicates(chunks: int, folder: Path) -> None:
    random = np.random.default_rng(0)
    planted: Counter[str] = Counter()
    with (folder / "chunks.jsonl").open("w") as rows:
        earlier: list[str] = []
        for number, text in enumerate(texts(chunks, 90)):
            kind = random.random() if len(earlier) > 1000 else 1.0
            if kind < 0.1:
                text = earlier[int(random.integers(len(earlier)))]
                planted["exact duplicate" if kind < 0.05 else "near duplicate"] += 1
                text = text if kind < 0.05 else f"{text.rpartition(' ')[0]} altered{number}"
            else:
                earlier = [*earlier[-5000:], text] if number % 5000 == 0 else earlier
                earlier.append(text)
            rows.write(json.dumps({"id": str(number), "text": text, "page": str(number)}) + "\n")
    before, started, cores = megabytes(), time.perf_counter(), time.process_time()
    outcomes: Counter[str] = Counter()
    streams = Streams({"chunks": (folder / "chunks.jsonl",)}, folder)
    for item in DropDuplicates().run(streams, StepWork(Runtime(store=Store(folder / "store")))):
        outcomes[item.reason if isinstance(item, Rejected) else "kept"] += 1
    took = f"{time.perf_counter() - started:.1f} s, {time.process_time() - cores:.1f} s of cores"
    print(f"{chunks:,} chunks: {took}, {before:,} MB before, {megabytes():,} MB at most")
    print(f"planted {dict(planted)}, outcome {dict(outcomes)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--chunks", type=int, default=125_000, help="texts of pages; they make about 100,000 chunks")
    parser.add_argument("--duplicates", type=int, default=0, help="MinHash alone, over so many chunks")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if given.duplicates:
            duplicates(given.duplicates, Path(scratch))
        else:
            whole(given.questions, given.chunks, Path(scratch))
