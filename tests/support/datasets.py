"""Small datasets: in memory, and on disk in every layout that `r2med.load` reads."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from r2med.data import Corpus, Dataset, Qrels, Query

Row = Mapping[str, Any]

DOCUMENTS: Sequence[Row] = (
    {"id": "0", "text": "Gluten harms the small bowel in coeliac disease."},
    {"id": "d-ü", "text": "Ein Text mit Umlauten, 漢字 und 😀."},
    {"id": "d2", "text": "Iron deficiency has many causes."},
)
# The first id is also that of a document; the second query must not get a document that is not its answer.
QUERIES: Sequence[Row] = (
    {"id": "0", "text": "Tired after bread?", "answer": "Coeliac disease", "body_system": "Digestive"}
    | {"doc_id": ["0"], "excluded_ids": []},
    {"id": "1", "text": "Why is she pale?", "answer": "Iron deficiency", "body_system": "Other / NA"}
    | {"doc_id": ["d-ü"], "excluded_ids": ["0"]},
)
QRELS: Sequence[Row] = (
    {"q_id": "0", "p_id": "0", "score": 2},
    {"q_id": "0", "p_id": "d2", "score": 0},
    {"q_id": "1", "p_id": "d2", "score": 1},
)
MARKUP = "<img src=x onerror='window.harmed=1'>\u202e __proto__ javascript:alert(1)"
LIVE_DOCUMENTS = [
    ("gluten", "Gluten harms the small bowel in coeliac disease."),
    ("iron", "Iron deficiency has many causes; bread is none of them."),
    ("knee", "A swollen knee after a fall."),
    (MARKUP, f"A swollen face, and {MARKUP} in the text."),
]
GRADES = {"0": {"0": 2, "d2": 0}, "1": {"d2": 1}}


def dataset_of(corpus: Corpus, queries: Sequence[Query] = ()) -> Dataset:
    """Return a dataset around a corpus in memory, for tests of what searches it."""
    return Dataset("small", tuple(queries), corpus, Qrels({}))


def with_short_documents(dataset: Dataset, characters: int) -> Dataset:
    """Return a dataset with the beginnings of its documents, which a model reads in a fraction of the time."""
    return replace(dataset, corpus=Corpus.of([(name, text[:characters]) for name, text in dataset.corpus]))


def write_jsonl(path: Path, rows: Iterable[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: Sequence[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def r2med_folder(
    root: Path,
    documents: Iterable[Row] = DOCUMENTS,
    queries: Iterable[Row] = QUERIES,
    qrels: Iterable[Row] = QRELS,
) -> Path:
    write_jsonl(root / "corpus.jsonl", documents)
    write_jsonl(root / "query.jsonl", queries)
    write_jsonl(root / "qrels.jsonl", qrels)
    return root


def random_folder(root: Path, documents: int, queries: int = 5) -> Path:
    """Write an R2MED folder of random words, the same for the same sizes."""
    return r2med_folder(root, *_random_rows(documents, queries))


@cache
def _random_rows(documents: int, queries: int) -> tuple[list[Row], list[Row], list[Row]]:
    chance = random.Random(documents)
    words = ["".join(chance.choices("abcdefghiklmnoprstu", k=chance.randint(3, 9))) for _ in range(3000)]
    texts = [" ".join(chance.choices(words, k=60)) for _ in range(documents)]
    asked = [(f"q{i}", chance.randrange(documents)) for i in range(queries)]
    return (
        [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)],
        [{"id": query, "text": " ".join(texts[row].split()[:8])} for query, row in asked],
        [{"q_id": query, "p_id": f"d{row}", "score": 1} for query, row in asked],
    )


def beir_folder(
    root: Path,
    documents: Iterable[Row] = DOCUMENTS,
    queries: Iterable[Row] = QUERIES,
    qrels: Iterable[Row] = QRELS,
) -> Path:
    def renamed(row: Row) -> Row:
        return {"_id": row["id"], **{key: value for key, value in row.items() if key in ("title", "text")}}

    write_jsonl(root / "corpus.jsonl", map(renamed, documents))
    write_jsonl(root / "queries.jsonl", map(renamed, queries))
    lines = [f"{row['q_id']}\t{row['p_id']}\t{row['score']}\n" for row in qrels]
    (root / "qrels").mkdir()
    text = "".join(["query-id\tcorpus-id\tscore\n", *lines])
    (root / "qrels" / "test.tsv").write_bytes(text.encode())
    return root


def hub_files(root: Path, suffix: str = "parquet") -> Path:
    """Write a dataset as the hub lays it out: one folder per config, whose split bears its name."""
    write = write_parquet if suffix == "parquet" else write_jsonl
    for config, rows in (("corpus", DOCUMENTS), ("query", QUERIES), ("qrels", QRELS)):
        name = f"{config}-00000-of-00001.parquet" if suffix == "parquet" else f"{config}.jsonl"
        write(root / config / name, rows)
    return root
