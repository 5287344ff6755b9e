"""What a Ray cluster costs and brings: one node against threads, and one worker against two, on made-up passages.

    python benchmarks/cluster.py                     # 240,000 passages of 100 words
    python benchmarks/cluster.py --documents 60000

Needs the extra `cluster`. Two workers have one core each, so that two cores can show what a second machine brings. The
encoder is a cheap one of NumPy alone: a real model takes longer by far, and the cluster's share becomes smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scale import make

if TYPE_CHECKING:
    from r2med.foundation.store import Store

DIMENSION = 256


class Hashing:
    """Sums a fixed random vector for each word: something between nothing and a model."""

    revision = "1"
    _table = np.random.default_rng(1).standard_normal((4096, DIMENSION)).astype(np.float32)

    def encode(self, texts: list[str]) -> np.ndarray:
        rows = np.empty((len(texts), DIMENSION), np.float32)
        for number, text in enumerate(texts):
            rows[number] = self._table[[zlib.crc32(word.encode()) % 4096 for word in text.split()]].sum(axis=0)
        return rows


def measure(job: str, workers: int, folder: Path) -> dict[str, float]:
    """Return the seconds of a job on so many workers of one core each; 0: all cores by threads, -1: by one worker."""
    from r2med import load
    from r2med.foundation.engine.work import WorkNeeds
    from r2med.foundation.runtime.runtime import Runtime, open_engine
    from r2med.foundation.store import Store, default_store
    from r2med.models.encoders.encoder import open_encoder
    from r2med.models.encoders.model_cards import resolve_card
    from r2med.systems.retrieve.bm25.index import open_index
    from r2med.systems.retrieve.vectors.embeddings import embed_corpus

    dataset = load(str(folder / "data"), Store(folder / "read"))
    engine = open_engine("ray" if workers else "threads")
    if workers > 0:
        _start(workers)
    started = time.perf_counter()
    list(engine.map(_import, [None], Store(folder / "read"), WorkNeeds()))  # starts the workers
    ready, used = time.perf_counter(), _cpu_seconds()
    store = default_store()
    if job == "bm25":
        open_index(dataset.corpus, Runtime(store=store, engine=engine))
    else:
        encoder = open_encoder(resolve_card("py:cluster:Hashing"), dataset.instruction, Runtime())
        embed_corpus(dataset.corpus, encoder, store, engine)
    return {"start": ready - started, "seconds": time.perf_counter() - ready, "cpu": _cpu_seconds() - used}


def _cpu_seconds() -> float:
    """Return the seconds of cores that this process took, and all that it started: Ray's own are among them."""
    import psutil  # comes with Ray

    process = psutil.Process()
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def _import(item: None, store: Store) -> tuple[dict[str, str], None]:
    """Import what the work needs, as a worker does once."""
    import r2med.systems.retrieve.bm25.index
    import r2med.systems.retrieve.vectors.embeddings  # noqa: F401

    return {}, None


def _start(workers: int) -> None:
    """Start a cluster on this machine with so many nodes of one core."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    for _ in range(workers):
        cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1", include_dashboard=False, object_store_memory=1 << 30)
    os.environ["RAY_ADDRESS"] = cluster.address


CONTENDERS: dict[str, tuple[str, int]] = {
    "BM25 index, threads": ("bm25", 0),
    "BM25 index, one node": ("bm25", -1),
    "encoding, threads": ("encode", 0),
    "encoding, one node": ("encode", -1),
    "encoding, 1 worker of one core": ("encode", 1),
    "encoding, 2 workers of one core": ("encode", 2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=240_000)
    parser.add_argument("--only", default="", help="the beginning of the contenders to run, such as encoding")
    parser.add_argument("--one", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*CONTENDERS[args.one], args.folder)))
        return
    here = str(Path(__file__).parent)
    with tempfile.TemporaryDirectory(prefix="r2") as folder:  # short, for the names of sockets
        make(Path(folder), args.documents)
        variables = {
            "PYTHONPATH": os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH")))),
            "RAY_TMPDIR": folder,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        for name in [name for name in CONTENDERS if name.startswith(args.only)]:
            environment = {**os.environ, **variables, "R2MED_HOME": f"{folder}/{name}"}
            words = [sys.executable, __file__, "--one", name, "--folder", folder]
            out = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            figures = json.loads(out.splitlines()[-1])
            times = f"{figures['seconds']:.1f} s, {figures['cpu']:.2f} s of cores"
            print(f"{name}: {times}, and {figures['start']:.1f} s to start", flush=True)


if __name__ == "__main__":
    main()
