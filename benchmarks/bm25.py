"""BM25 against its peers, in one run: analysis, index and top-1000 search, each contender in a process of its own.

    python benchmarks/bm25.py                     # 60,000 made-up passages of 150 words, 120 queries of 230
    python benchmarks/bm25.py --scaling           # r2med alone: 60k against 240k
    python benchmarks/bm25.py --corpus DIR        # a dataset folder instead

Needs the packages of the group `benchmark` (`pip install --group benchmark`). A peer that is not installed is left out
and named.
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
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

K = 1000
Times = dict[str, npt.NDArray[np.float64]]
SUFFIXES = ["", "s", "ed", "ing", "ation", "al", "ous", "ity", "ly", "ness", "ment", "ic", "ative"]


def make_texts(count: int, words: int, seed: int) -> list[str]:
    """Zipf-distributed invented words, with the case, punctuation and numbers that make chunks differ."""
    rng = np.random.default_rng(7)  # the vocabulary is one, whatever the seed of the texts
    syllables = np.array([c + v for c in "bcdfghklmnprstvz" for v in "aeiou"] + ["th", "st", "ph", "ch"])
    stems = ["".join(rng.choice(syllables, n)) for n in rng.integers(1, 5, 60_000)]
    common = "the of and in to a with was for is patients were by that on as from cells at this".split()
    vocabulary = np.array(common + [stem + SUFFIXES[i % len(SUFFIXES)] for i, stem in enumerate(stems)])
    rng = np.random.default_rng(seed)
    marks = np.array(["", "", "", "", "", "", "", ",", ".", ")", ";"])
    ranks = np.minimum(rng.zipf(1.15, count * words) - 1, len(vocabulary) - 1)
    # Zipf's long tail lands on the last word; spread it over the vocabulary.
    tail = ranks == len(vocabulary) - 1
    ranks[tail] = rng.integers(0, len(vocabulary), tail.sum())
    tokens = np.char.add(vocabulary[ranks], marks[rng.integers(0, len(marks), count * words)])
    capital = rng.random(count * words) < 0.06
    tokens[capital] = np.char.capitalize(tokens[capital])
    return [" ".join(line) for line in tokens.reshape(count, words)]


def now() -> npt.NDArray[np.float64]:
    """Return the time by the clock and by the cores: on a machine that is not alone, only the second is the work's."""
    return np.array([time.perf_counter(), time.process_time()])


def r2med(texts: list[str], queries: list[str], warm: bool) -> Times:
    import pyarrow as pa

    from r2med.data import Corpus, Dataset, Qrels, Query
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.store import Store
    from r2med.systems.retrieve.bm25 import BM25
    from r2med.systems.retrieve.retriever import SearchQuery

    def of(texts: list[str]) -> Dataset:
        return Dataset("made", (), Corpus.of((str(i), text) for i, text in enumerate(texts)), Qrels({}))

    searches = [SearchQuery(Query(str(i), text)) for i, text in enumerate(queries)]
    with tempfile.TemporaryDirectory() as folder:
        runtime = Runtime(store=Store(folder))
        if warm:
            dataset = of(texts)
            BM25().search(dataset, [], K, runtime)
        pa.array(())  # pyarrow imports pandas with the first array, where there is one: no import is on the clock
        start = now()
        if not warm:
            dataset = of(texts)
        with runtime.one_search() as opened:
            BM25().search(dataset, [], K, opened)
            indexed = now()
            BM25().search(dataset, searches, K, opened)
        return {"index": indexed - start, "search": now() - indexed}


def original(texts: list[str], queries: list[str]) -> Times:
    """The benchmark's own way, after BRIGHT: every document analysed by itself, gensim's model on both sides."""
    from gensim.corpora import Dictionary
    from gensim.models import LuceneBM25Model
    from gensim.similarities import SparseMatrixSimilarity

    analyse = _lucene_or_ours()
    start = now()
    documents = [analyse(text) for text in texts]
    dictionary = Dictionary(documents)
    model = LuceneBM25Model(dictionary=dictionary, k1=0.9, b=0.4)
    corpus = model[list(map(dictionary.doc2bow, documents))]
    index = SparseMatrixSimilarity(
        corpus, num_docs=len(texts), num_terms=len(dictionary), normalize_queries=False, normalize_documents=False
    )
    indexed = now()
    for query in queries:
        scores = index[model[dictionary.doc2bow(analyse(query))]].tolist()
        sorted(enumerate(scores), key=lambda pair: pair[1], reverse=True)[:K]
    return {"index": indexed - start, "search": now() - indexed}


def _lucene_or_ours() -> Callable[[str], list[str]]:
    try:
        from pyserini.analysis import Analyzer, get_lucene_analyzer

        return Analyzer(get_lucene_analyzer()).analyze
    except Exception:
        from r2med.foundation.text import english

        return english


def bm25s(texts: list[str], queries: list[str]) -> Times:
    import bm25s as peer
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    quiet = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
    warm = peer.BM25(k1=0.9, b=0.4, backend="numba")  # compile outside the clock, as its users would have it
    warm.index(peer.tokenize(texts[:200], **quiet), show_progress=False)
    warm.retrieve(peer.tokenize(queries[:2], **quiet), k=50, show_progress=False, backend_selection="numba")
    start = now()
    model = peer.BM25(k1=0.9, b=0.4, backend="numba")
    model.index(peer.tokenize(texts, **quiet), show_progress=False)
    indexed = now()
    model.retrieve(peer.tokenize(queries, **quiet), k=K, show_progress=False, backend_selection="numba")
    return {"index": indexed - start, "search": now() - indexed}


def tantivy(texts: list[str], queries: list[str]) -> Times:
    import tantivy as peer

    builder = peer.SchemaBuilder()
    builder.add_unsigned_field("row", stored=True)
    builder.add_text_field("text", tokenizer_name="en_stem")
    schema = builder.build()
    start = now()
    index = peer.Index(schema)
    writer = index.writer(heap_size=512_000_000, num_threads=os.cpu_count() or 1)
    for row, text in enumerate(texts):
        writer.add_document(peer.Document(row=row, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    indexed = now()
    searcher = index.searcher()
    for query in queries:
        words = "".join(c if c.isalnum() else " " for c in query)
        searcher.search(index.parse_query(words, ["text"]), K)
    return {"index": indexed - start, "search": now() - indexed}


CONTENDERS: dict[str, Callable[[list[str], list[str]], Times]] = {
    "r2med": lambda texts, queries: r2med(texts, queries, warm=False),
    "r2med warm": lambda texts, queries: r2med(texts, queries, warm=True),
    "tantivy": tantivy,
    "bm25s": bm25s,
    "the original's way": original,
}


def run_alone(name: str, source: Path) -> dict[str, float] | None:
    """Run one contender in a fresh process; None if its package is not there."""
    command = [sys.executable, __file__, "--contender", name, "--source", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: left out ({done.stderr.strip().splitlines()[-1][:100]})", file=sys.stderr)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def contend(name: str, source: Path) -> None:
    kinds: dict[str, list[str]] = {"query": [], "text": []}
    with source.open() as file:
        for line in file:
            kind, text = json.loads(line)
            kinds[kind].append(text)
    times = CONTENDERS[name](kinds["text"], kinds["query"])
    times["total"] = times["index"] + times["search"]
    cpu = {f"{name} cpu": time[1] for name, time in times.items()}
    print(json.dumps({**{name: time[0] for name, time in times.items()}, **cpu, "peak": peak_memory()}))


def peak_memory() -> float:
    """MiB this process held at most; getrusage would answer with its parent's peak where that was higher."""
    try:
        line = next(li for li in Path("/proc/self/status").read_text().splitlines() if li.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def best(name: str, source: Path, repeat: int) -> dict[str, float] | None:
    rounds = [run_alone(name, source) for _ in range(repeat)]
    kept = [r for r in rounds if r is not None]
    return min(kept, key=lambda r: r["total"]) if kept else None


def report(results: dict[str, dict[str, float]]) -> None:
    base = results["r2med"]
    columns = ("index s", "search s", "total s", "× r2med", "of cores", "× r2med", "peak MiB")
    print(f"{'':20}", *(f"{column:>8}" for column in columns))
    for name, r in results.items():
        times = f"{r['index']:8.2f} {r['search']:8.2f} {r['total']:8.2f} {r['total'] / base['total']:8.2f}"
        cpu = f"{r['total cpu']:8.2f} {r['total cpu'] / base['total cpu']:8.2f}"
        print(f"{name:20} {times} {cpu} {r['peak']:8.0f}")
    if "r2med warm" in results and "bm25s" in results:
        ours, theirs = results["r2med warm"], results["bm25s"]
        clock, cores = (ours[key] / theirs[key] for key in ("search", "search cpu"))
        print(f"warm search: {clock:.2f} times bm25s's compiled search by the clock, {cores:.2f} times by the cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--words", type=int, default=150)
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("--query-words", type=int, default=230)
    parser.add_argument("--corpus", type=Path, help="a dataset folder to take texts and queries from")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each contender; the best counts")
    parser.add_argument("--only", help="contenders, separated by commas")
    parser.add_argument("--scaling", action="store_true", help="r2med on 1 and 4 times the documents")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        contend(args.contender, args.source)
        return
    names = args.only.split(",") if args.only else list(CONTENDERS)
    with tempfile.TemporaryDirectory() as folder:

        def source(documents: int) -> Path:
            path = Path(folder) / f"{documents}.json"
            if args.corpus:
                from r2med.data import load

                dataset = load(args.corpus)
                texts, queries = [t for _, t in dataset.corpus], [q.text for q in dataset.queries]
            else:
                texts = make_texts(documents, args.words, seed=1)
                queries = make_texts(args.queries, args.query_words, seed=2)
            with path.open("w") as file:
                for kind, lines in (("query", queries), ("text", texts)):
                    file.writelines(json.dumps([kind, line]) + "\n" for line in lines)
            return path

        if args.scaling:
            for documents in (args.documents, 4 * args.documents):
                result = best("r2med", source(documents), args.repeat)
                assert result is not None
                print(f"{documents:8,} documents: {json.dumps({k: round(v, 2) for k, v in result.items()})}")
            return
        path = source(args.documents)
        results = {name: r for name in names if (r := best(name, path, args.repeat)) is not None}
        report(results)


if __name__ == "__main__":
    main()
