"""Many documents on one machine: the corpus read, indexed by BM25, opened again and searched, each in its own process.

    python benchmarks/scale.py                                 # 1 million passages of 100 words, then 10 million
    python benchmarks/scale.py --documents 200000 --folder /big/disk

10 million take 25 GB in the folder while they run; all of it is removed after.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bm25 import SUFFIXES

WORDS, QUERIES, QUERY_WORDS, K = 100, 100, 30, 1000
VOCABULARY = 500_000
AT_ONCE = 10_000
SAMPLE_SECONDS = 0.05


class Texts:
    """Zipf-distributed invented words, a seventh of them with a mark or a capital."""

    def __init__(self, seed: int) -> None:
        words = np.random.default_rng(7)  # the vocabulary is one, whatever the seed of the texts
        syllables = [c + v for c in "bcdfghklmnprstvz" for v in "aeiou"]
        picks = words.integers(0, len(syllables), (VOCABULARY, 3)).tolist()
        sizes = words.integers(1, 4, VOCABULARY).tolist()
        stems = ["".join(syllables[i] for i in row[:size]) for row, size in zip(picks, sizes, strict=True)]
        plain = [stem + SUFFIXES[i % len(SUFFIXES)] for i, stem in enumerate(stems)]
        forms = [form for word in plain for form in (word, f"{word},", f"{word}.", word.capitalize())]
        self._forms = pa.array(forms, pa.string())
        chances = 1 / np.arange(10, VOCABULARY + 10)  # as words of English fall off, without its twenty commonest
        ranks = np.searchsorted(np.cumsum(chances / chances.sum()), words.random(1 << 22))
        marks = words.choice(4, len(ranks), p=(0.86, 0.05, 0.04, 0.05))
        self._draws = (np.minimum(ranks, VOCABULARY - 1) * 4 + marks).astype(np.int32)
        self._rng = np.random.default_rng(seed)

    def make(self, count: int, words: int) -> list[str]:
        """Return texts of so many words each."""
        drawn = self._draws[self._rng.integers(0, len(self._draws), count * words, dtype=np.uint32)]
        offsets = np.arange(0, count * words + 1, words, dtype=np.int32)
        lists = pa.ListArray.from_arrays(offsets, self._forms.take(pa.array(drawn)))
        return list(pc.binary_join(lists, " ").to_pylist())


def make(folder: Path, documents: int) -> dict[str, float]:
    """Write the corpus, line by line."""
    data = folder / "data"
    data.mkdir()
    texts = Texts(1)
    with (data / "corpus.jsonl").open("w") as file:
        for first in range(0, documents, AT_ONCE):
            made = texts.make(min(AT_ONCE, documents - first), WORDS)
            file.writelines(f'{{"id": "d{first + n}", "text": "{text}"}}\n' for n, text in enumerate(made))
    queries = Texts(2).make(QUERIES, QUERY_WORDS)
    lines = [json.dumps({"id": f"q{n}", "text": text}) for n, text in enumerate(queries)]
    (data / "query.jsonl").write_text("\n".join(lines) + "\n")
    judged = [json.dumps({"q_id": f"q{n}", "p_id": f"d{n}", "score": 1}) for n in range(QUERIES)]
    (data / "qrels.jsonl").write_text("\n".join(judged) + "\n")
    return {"gigabytes": (data / "corpus.jsonl").stat().st_size / 1e9}


def read(folder: Path, documents: int) -> dict[str, float]:
    """Read the corpus for the first time, fingerprint and order of ids included."""
    from r2med import load
    from r2med.foundation.store import Store

    assert len(load(str(folder / "data"), Store(folder / "store")).corpus) == documents
    return {}


def index(folder: Path, documents: int) -> dict[str, float]:
    """Build the index."""
    from r2med import load
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.store import Store
    from r2med.systems.retrieve.bm25 import BM25

    store = Store(folder / "store")
    BM25().search(load(str(folder / "data"), store), [], K, Runtime(store=store))
    return {}


def search(folder: Path, documents: int) -> dict[str, float]:
    """Open corpus and index again, and search."""
    from r2med import load
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.store import Store
    from r2med.systems.retrieve.bm25 import BM25
    from r2med.systems.retrieve.retriever import SearchQuery

    pa.array(())  # where there is pandas, the first array imports it
    store = Store(folder / "store")
    started = time.perf_counter()
    dataset = load(str(folder / "data"), store)
    loaded = time.perf_counter()
    with Runtime(store=store).one_search() as runtime:
        BM25().search(dataset, [], K, runtime)
        opened = time.perf_counter()
        run = BM25().search(dataset, [SearchQuery(query) for query in dataset.queries], K, runtime).run
        searched = time.perf_counter()
    assert int(run.found.min()) == K
    return {
        "corpus opened": loaded - started,
        "index opened": opened - loaded,
        "per query": (searched - opened) / QUERIES,
    }


STEPS: dict[str, Callable[[Path, int], dict[str, float]]] = {
    "make": make,
    "read": read,
    "index": index,
    "search": search,
}


def run_step(name: str, folder: Path, documents: int) -> dict[str, float]:
    """Run one step in a fresh process."""
    command = [sys.executable, __file__, "--step", name, "--folder", str(folder), "--documents", str(documents)]
    return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


@contextmanager
def own_memory() -> Iterator[list[float]]:
    """Watch the memory of this process in MiB, without the pages of files, which the kernel takes back when it must."""
    sizes, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            lines = Path("/proc/self/status").read_text().splitlines()
            sizes.append(int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield sizes
    finally:
        done.set()
        watcher.join()


def step(name: str, folder: Path, documents: int) -> dict[str, float]:
    started = time.perf_counter()
    with own_memory() as sizes:
        more = STEPS[name](folder, documents)
    used = resource.getrusage(resource.RUSAGE_SELF)
    times = {"seconds": time.perf_counter() - started, "cpu": used.ru_utime + used.ru_stime}
    return {**times, "peak MiB": max(sizes), **more}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="where the corpus and its index are put while they are needed")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        print(json.dumps(step(args.step, args.folder, args.documents[0])))
        return
    for documents in args.documents:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            for name in STEPS:
                figures = run_step(name, Path(folder), documents)
                shown = ", ".join(f"{key} {value:,.2f}" for key, value in figures.items())
                print(f"{documents:,} {name}: {shown}", flush=True)
            stored = sum(path.stat().st_size for path in (Path(folder) / "store").rglob("*") if path.is_file())
            print(f"{documents:,} stored: {stored / 1e9:.2f} GB", flush=True)


if __name__ == "__main__":
    main()
