"""Records as `r2med run` would have written them, of systems whose quality is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from r2med.data.dataset_cards import source_of
from r2med.evaluation.records.collection import checked
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import DatasetFacts, QueryFacts, StageFacts
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.cost import Cost

BODY_SYSTEMS = ("Cardiovascular", "Digestive", "Nervous")
TASKS = {"Biology": ("Q&A reference", "Q&A"), "PMC-Clinical": ("clinical case", "case")}


def record(
    system: str,
    dataset: str,
    values: Sequence[float],
    seconds: float = 1.0,
    seed: int = 0,
    repeat: int = 0,
    varies: bool = False,
) -> Record:
    """Return a record with these values of nDCG@10 and MRR."""
    random = np.random.default_rng(seed)
    queries = [f"q{number}" for number in range(len(values))]
    task, scenario = TASKS.get(dataset, ("", ""))
    return Record(
        key="0" * 32,
        system=system,
        settings={"k": 1000} | ({"repeat": repeat} if repeat else {}),
        dataset=DatasetFacts(
            name=dataset,
            fingerprint=dataset,
            corpus_fingerprint=dataset,
            queries=len(queries),
            documents=100,
            judged_queries=len(queries),
            task=task,
            scenario=scenario,
            source=source_of(dataset),
        ),
        mean={"nDCG@10": float(np.mean(values)), "MRR": float(np.mean(values))},
        per_query={query: {"nDCG@10": float(v), "MRR": float(v)} for query, v in zip(queries, values, strict=True)},
        queries={
            query: QueryFacts(words=20 * n, positives=1 + n % 6, body_system=BODY_SYSTEMS[n % 3])
            for n, query in enumerate(queries)
        },
        stages=(
            StageFacts(
                stage="retrieve",
                name=system,
                cost=Cost(seconds=seconds * len(queries), dollars=seconds / 10),
                gold={query: {"gold": int(random.integers(1, 200))} for query in queries},
                varies=varies,
            ),
        ),
        versions={},
        source="0" * 16,
        created="2026-01-01T00:00:00+00:00",
    )


def records(systems: Mapping[str, float], datasets: Mapping[str, int], seed: int = 0) -> list[Record]:
    """Return a record for each system, of about this quality, on each dataset of this many queries."""
    random = np.random.default_rng(seed)
    made = []
    for dataset, size in datasets.items():
        hardness = random.normal(0, 0.2, size)
        for number, (system, quality) in enumerate(systems.items()):
            values = np.clip(quality + hardness + random.normal(0, 0.1, size), 0, 1).round(3)
            made.append(record(system, dataset, values.tolist(), 0.1 * 10.0 ** (number % 4), seed + number))
    return made


def repeated(
    systems: Mapping[str, tuple[float, int]], datasets: Mapping[str, int], noise: float = 0.05, shift: float = 0.0
) -> list[Record]:
    """Return records of systems of about this quality that vary and were run this often; -1: once, and it cannot vary.

    `noise` is the spread of single values between runs, and `shift` that of all values of a run.
    """
    random = np.random.default_rng(0)
    made = []
    for dataset, size in datasets.items():
        hardness = random.normal(0, 0.15, size)
        for system, (quality, runs) in systems.items():
            own = quality + hardness + random.normal(0, 0.08, size)
            for repeat in range(abs(runs)):
                moved = shift * random.normal() + noise * random.normal(size=size) if runs > 0 else 0.0
                values = np.clip(own + moved, 0, 1).round(3).tolist()
                made.append(record(system, dataset, values, repeat=repeat, varies=runs > 0))
    return made


def write_records(made: Sequence[Record], out: Path) -> Path:
    """Write records where `r2med run` puts them."""
    for number, each in enumerate(made):
        each.write(out / each.dataset.name / f"{slug(each.system)}-{number:010x}.json")
    return out


def collection(made: Sequence[Record]) -> RecordCollection:
    """Return records as if they had been read."""
    return checked([StoredRecord(each, Path(f"{number}.json")) for number, each in enumerate(made)])
