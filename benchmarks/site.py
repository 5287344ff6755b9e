"""Making the board's site at the size of the benchmark: seconds, peak memory and size on disk.

    python benchmarks/site.py                    # 100 systems × 8 datasets, 876 queries, 357,000 documents
    python benchmarks/site.py --repeats 5        # each system was run five times
    python benchmarks/site.py --systems 10 --keep DIR

Corpora, queries, runs of 1,000 documents and generated texts are made up in a process of their own, as large as the
real ones. Systems share sixteen different runs a dataset, so that a query shows some two hundred documents.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from board import made_up, timed

from r2med.data import Dataset, load
from r2med.data.dataset_cards import cards, groups
from r2med.data.runs.run import Run
from r2med.data.runs.trec import write_run
from r2med.evaluation.records.record_facts import FileFacts, RunFacts
from r2med.foundation.store.files import sha256
from r2med.publication.site.site import make_board

DEPTH = 1000
RUNS = 16
SENTENCE = 80
CHARACTERS = dict(zip(groups()["R2MED"], (329, 659, 571, 726, 785, 696, 2094, 5420), strict=True))
"""The mean length of a document."""


def make_up(folder: Path, systems: int, repeats: int) -> None:
    """Write datasets, runs and records."""
    random = np.random.default_rng(0)
    words = np.array(
        ["".join(random.choice(list("abcdefghilmnoprstu"), random.integers(2, 11))) for _ in range(30_000)]
    )
    drawn = np.minimum(random.zipf(1.2, (20_000, SENTENCE // 7)) - 1, len(words) - 1)
    sentences = np.array([" ".join(line).capitalize() + "." for line in words[drawn]], dtype=object)
    for name in groups()["R2MED"]:
        write_dataset(folder / "data" / name, name, sentences, random)
        write_results(folder / "results" / name, load(folder / "data" / name), systems, repeats, sentences, random)


def text(sentences: Any, length: int, random: np.random.Generator) -> str:
    return " ".join(sentences[random.integers(0, len(sentences), max(1, length // SENTENCE))])


def write_dataset(folder: Path, name: str, sentences: Any, random: np.random.Generator) -> None:
    counts = cards()[name].counts
    assert counts is not None
    folder.mkdir(parents=True)
    lengths = random.lognormal(np.log(CHARACTERS[name]) - 0.3, 0.8, counts.documents).astype(int)
    with (folder / "corpus.jsonl").open("w") as file:
        for number, length in enumerate(lengths.tolist()):
            file.write(json.dumps({"id": f"d{number}", "text": text(sentences, length, random)}) + "\n")
    queries = [f"q_PMC{number:08}" for number in range(counts.queries)]
    with (folder / "query.jsonl").open("w") as file:
        for query in queries:
            row = {"id": query, "text": text(sentences, 800, random), "answer": "Made up", "body_system": "Nervous"}
            file.write(json.dumps(row) + "\n")
    with (folder / "qrels.jsonl").open("w") as file:
        for query in queries:
            for document in random.choice(counts.documents, 3, replace=False).tolist():
                file.write(json.dumps({"q_id": query, "p_id": f"d{document}", "score": 1}) + "\n")


def write_results(
    folder: Path, dataset: Dataset, systems: int, repeats: int, sentences: Any, random: np.random.Generator
) -> None:
    folder.mkdir(parents=True)
    queries = [query.id for query in dataset.queries]
    gold = [{document: dataset.corpus.row(document) for document in dataset.qrels[query]} for query in queries]
    facts = []
    for number in range(min(RUNS, systems)):
        rows = np.array([random.choice(len(dataset.corpus), DEPTH, replace=False) for _ in queries], dtype=np.int32)
        ranks = np.exp(random.uniform(0, np.log(4 * DEPTH), (len(queries), 3))).astype(int)
        ranks = np.sort(ranks, axis=1) + np.arange(3)  # no two at one place
        for line, (documents, at) in enumerate(zip(gold, ranks.tolist(), strict=True)):
            for row, rank in zip(documents.values(), at, strict=True):
                rows[line, np.flatnonzero(rows[line] == row)] = 0
                if rank <= DEPTH:
                    rows[line, rank - 1] = row
        scores = np.sort(random.random(rows.shape).astype(np.float32), axis=1)[:, ::-1]
        write_run(Run(tuple(queries), rows, scores, dataset.corpus), folder / f"{number}.trec.gz")
        with (folder / f"{number}.generated.jsonl").open("w") as file:
            for query in queries:
                file.write(json.dumps({"id": query, "texts": [text(sentences, 700, random)]}) + "\n")
        names = {
            query: dict(zip(of, at, strict=True)) for query, of, at in zip(queries, gold, ranks.tolist(), strict=True)
        }
        facts.append({q: {d: rank for d, rank in of.items() if rank <= DEPTH} for q, of in names.items()})
    for number, repeat in itertools.product(range(systems), range(repeats)):
        shared = number % RUNS
        record = made_up(f"system-{number:03} → bm25", folder.name, random.random(len(queries)), random)
        files = {"run": f"{shared}.trec.gz", "generated": f"{shared}.generated.jsonl"}
        sums = {kind: {"file": file, "sha256": sha256(folder / file)} for kind, file in files.items()}
        record = record.model_copy(
            update={
                "dataset": record.dataset.model_copy(update={"name": dataset.name, "fingerprint": dataset.fingerprint}),
                "settings": record.settings | ({"repeat": repeat} if repeat else {}),
                "stages": (record.stages[0].model_copy(update={"gold": facts[shared], "varies": repeats > 1}),),
                "run": RunFacts(**sums["run"], depth=DEPTH),
                "generated": FileFacts(**sums["generated"]) if number % 2 else None,
            }
        )
        record.write(folder / f"system-{number:03}-{repeat:02x}{number:08x}.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where to leave the data and the site")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        os.environ["R2MED_HOME"] = str(folder / "home")
        if not (folder / "results").exists():
            maker = multiprocessing.get_context("spawn").Process(
                target=make_up, args=(folder, given.systems, given.repeats)
            )
            maker.start()
            maker.join()
        data = [str(folder / "data" / name) for name in groups()["R2MED"]]
        timed(
            f"site of {given.systems} systems × 8 datasets × {given.repeats} repeats",
            lambda: make_board([folder / "results"], folder / "board", data),
        )
        for part in sorted((folder / "board" / "data" / "explorer").glob("[0-9]")):
            sizes = [file.stat().st_size / 2**20 for file in part.iterdir()]
            print(f"  dataset {part.name}: {sum(sizes):6.1f} MiB in {len(sizes)} files, the largest {max(sizes):.2f}")


if __name__ == "__main__":
    main()
