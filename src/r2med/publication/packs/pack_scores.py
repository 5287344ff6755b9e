"""Score the runs of a pack again, and compare its stored rankings with them, before anything is written.

This needs the dataset. Records whose dataset is not on this machine are marked, and `r2med run` scores them later.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.data import Dataset
from r2med.data.runs.run import NO_DOCUMENT
from r2med.data.runs.run_file import Rankings, read_rankings
from r2med.evaluation.records.local_datasets import dataset_here
from r2med.evaluation.records.record import DatasetFacts, Record, declared_stages
from r2med.evaluation.running.scored_again import score_fault
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.publication.leaderboard.answer_verification import answer_record_faults
from r2med.publication.packs.verified_pack import OpenPack, PackedArtefact

Array = npt.NDArray[Any]


def scored_keys(pack: OpenPack, store: Store) -> set[str]:
    """Return the keys of the records whose scores were computed again with a dataset of this machine.

    Raises UserError if a record contradicts its run or its answers, or a stored ranking the run file of its record.
    """
    scored: set[str] = set()
    datasets: dict[str, Dataset | None] = {}

    def here(facts: DatasetFacts) -> Dataset | None:
        if facts.fingerprint not in datasets:
            datasets[facts.fingerprint] = dataset_here(facts, store)
        return datasets[facts.fingerprint]

    with tempfile.TemporaryDirectory(prefix="r2med-") as folder:
        for record, path in pack.records():
            file = pack.beside(path, record.run, Path(folder))
            if file is None:
                continue
            dataset = here(record.dataset)
            if dataset is not None:
                if fault := score_fault(record, file, dataset):
                    raise UserError(f"{path}: ", fault)
                scored.add(record.key)
            _check_stored_ranking(pack, record, path, file, dataset)
        for answers, path in pack.answer_records():
            file = pack.beside(path, answers.answers, Path(folder))
            dataset = here(answers.dataset)
            if file is None or dataset is None:
                continue
            given = answers.given(file.parent)
            if fault := next(answer_record_faults(answers, given, dataset), ""):
                raise UserError(f"{path}: ", fault)
            scored.add(answers.key)
    return scored


def _check_stored_ranking(pack: OpenPack, record: Record, path: Path, file: Path, dataset: Dataset | None) -> None:
    """Raise UserError if the pack has stored rankings, and none is that of the run file.

    A reranker, a search agent and a system in brackets change the rankings that are stored, so their records are left
    out.
    """
    stored = [each for each in pack.artefacts if each.kind == "run" and record.dataset.name in each.datasets]
    if not stored or record.settings.get("rerank") or record.traces is not None:
        return
    if any(stage["stage"] == "system" or "llm" in stage for stage in declared_stages(record.settings.get("retrieve"))):
        return
    written = read_rankings(file, encoded=True)
    if not any(_is_ranking(pack, each, written, dataset) for each in stored):
        raise UserError(f"{path}: no stored ranking of the pack is that of {file.name}")


def _is_ranking(pack: OpenPack, artefact: PackedArtefact, written: Rankings, dataset: Dataset | None) -> bool:
    """Return True if a stored ranking has the scores and the documents of a run file.

    Without the dataset, each row must be one document in the whole run.
    """
    rows, scores = (pack.array(artefact.files[name]) for name in ("rows.npy", "scores.npy"))
    counts = np.count_nonzero(rows != NO_DOCUMENT, axis=1)
    lines = [(rows[line, :count], scores[line, :count]) for line, count in enumerate(counts) if count]
    if len(lines) != len(written):
        return False
    for (found, values), ranking in zip(lines, written.values(), strict=True):
        if len(found) != len(ranking) or not np.array_equal(values, np.array([*ranking.values()], dtype=np.float32)):
            return False
    pairs = {*_pairs(lines, written)}
    if dataset is not None:
        ids = {row for row, _ in pairs}
        known = max(ids, default=0) < len(dataset.corpus)
        return known and {(row, dataset.corpus.id(row)) for row in ids} == pairs
    return len(pairs) == len({row for row, _ in pairs}) == len({document for _, document in pairs})


def _pairs(lines: Sequence[tuple[Array, Array]], written: Rankings) -> Iterator[tuple[int, str]]:
    for (found, _), ranking in zip(lines, written.values(), strict=True):
        yield from zip(found.tolist(), ranking, strict=True)
