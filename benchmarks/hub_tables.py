"""A large dataset in the hub's form (Parquet tables as BRIGHT has them), read from the hub's cache in a fresh process.

    python benchmarks/hub_tables.py                         # 500,000 passages of 150 words: a card, offline
    python benchmarks/hub_tables.py --long --documents 2000 --words 40000   # long documents, cut by the card

The files are written into a temporary folder, and removed after.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from scale import Texts, own_memory

AT_ONCE = 5_000
QUERIES = 142
SCHEMA = pa.schema([("id", pa.string()), ("content", pa.string())])


def make(folder: Path, config: str, domain: str, documents: int, words: int) -> float:
    """Write the tables of one domain and return the size of the corpus in GB."""
    from r2med.data.dataset_cards import cards

    revision = cards()[f"BRIGHT-{domain}"].hub.revision  # type: ignore[union-attr]
    root = folder / "datasets--xlangai--BRIGHT" / "snapshots" / revision
    path = root / config / f"{domain}-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    texts = Texts(1)
    with pq.ParquetWriter(path, SCHEMA) as writer:
        at_once = max(1, min(AT_ONCE, 20_000_000 // words))
        for first in range(0, documents, at_once):
            made = texts.make(min(at_once, documents - first), words)
            ids = [f"a part/of 'it'/{first + n}.txt" for n in range(len(made))]
            writer.write_table(pa.table([ids, made], schema=SCHEMA))
    rows = [
        {"id": str(n), "query": text, "gold_ids": [f"a part/of 'it'/{n}.txt"], "excluded_ids": ["N/A"]}
        | {"gold_ids_long": [f"a part/of 'it'/{n}.txt"]}
        for n, text in enumerate(Texts(2).make(min(QUERIES, documents), 30))
    ]
    (root / "examples").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), root / "examples" / path.name)
    return path.stat().st_size / 1e9


def read(name: str, folder: Path) -> None:
    """Load the dataset for the first time and again, and print what it took."""
    from r2med import load
    from r2med.foundation.store import Store

    started = time.perf_counter()
    with own_memory() as sizes:
        dataset = load(name, Store(folder / "store"))
        first = time.perf_counter()
        load(name, Store(folder / "store"))
        again = time.perf_counter() - first
    cut = [notice for notice in dataset.notices if "cut after" in notice]
    print(f"{dataset!r}: {first - started:.1f} s, again {again:.2f} s, peak {max(sizes):,.0f} MiB", *cut, sep="\n")


def main() -> None:
    """Write the tables, and read them in a process of its own."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--documents", type=int, default=500_000)
    options.add_argument("--words", type=int, default=150)
    options.add_argument("--long", action="store_true", help="Long documents: the card that cuts them.")
    options.add_argument("--read", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.read:
        read(given.read, given.folder)
        return
    config, domain = ("long_documents", "biology") if given.long else ("documents", "leetcode")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = make(folder, config, domain, given.documents, given.words)
        print(f"{given.documents:,} documents of {given.words:,} words, {size:.2f} GB of Parquet", flush=True)
        card = f"BRIGHT-long-{domain}" if given.long else f"BRIGHT-{domain}"
        offline = {**os.environ, "HF_HUB_CACHE": name, "HF_HUB_OFFLINE": "1"}
        subprocess.run([sys.executable, __file__, "--read", card, "--folder", name], check=True, env=offline)


if __name__ == "__main__":
    main()
