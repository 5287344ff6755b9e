"""`verify(entry, runs)`: compute the scores of an entry again from its runs, and name what does not match."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.data import Dataset, load
from r2med.data.dataset_cards import cards, groups
from r2med.errors import UserError
from r2med.measure import Measure, gold_ranks, score
from r2med.results.collection import Kept, checked
from r2med.results.record import Record, dataset_facts, query_facts
from r2med.results.submission import read_entry
from r2med.retrieve.run import Run
from r2med.store import Store, default_store
from r2med.store.files import sha256


@dataclass(frozen=True)
class Checked:
    """One record of an entry, and the first fault that was noticed; none where all was computed again and matches."""

    entry: Path
    system: str
    dataset: str
    fault: str = ""


def verify(
    entries: Sequence[Path], runs: Path, data: Sequence[str | Path | Dataset] = (), store: Store | None = None
) -> list[Checked]:
    """Check every record of entries against run files and judgements.

    Runs are recognised by their contents, wherever they lie below `runs`. Datasets are those of `data` with the same
    fingerprint, or those that a record names. Raises UserError if an entry cannot be read or two claim one system.
    """
    store = store or default_store()
    kept = [Kept(record, path) for path in entries for record in read_entry(path).records]
    checked(kept, max_failures=1.0)
    given = [source if isinstance(source, Dataset) else load(source, store) for source in data]
    datasets: dict[str, Dataset | str] = {dataset.fingerprint: dataset for dataset in given}
    for each in kept:
        facts = each.record.dataset
        if facts.fingerprint not in datasets:
            datasets[facts.fingerprint] = _loaded(facts.name, facts.fingerprint, store)
    files = _run_files(runs)
    return [
        Checked(
            each.path,
            each.record.system,
            each.record.dataset.name,
            next(_faults(each.record, datasets[each.record.dataset.fingerprint], files), ""),
        )
        for each in kept
    ]


def _run_files(runs: Path) -> dict[str, Path]:
    if not runs.is_dir():
        raise UserError(f"{runs}: no such folder: name the one with the run files by --runs")
    return {sha256(file): file for file in sorted(runs.rglob("*")) if file.is_file() and ".json" not in file.suffix}


def _loaded(name: str, fingerprint: str, store: Store) -> Dataset | str:
    """Return the dataset that a record names, or why it is not there; no name in an entry is taken for a path."""
    if name not in cards() and name not in groups()["demo"]:
        return f"{name} is no dataset that r2med knows: name its folder by --data"
    try:
        dataset = load(name, store)
    except UserError as error:
        return str(error)
    if dataset.fingerprint != fingerprint:
        return f"it was made on other data than {name} is here (fingerprint {fingerprint}, here {dataset.fingerprint})"
    return dataset


def _faults(record: Record, dataset: Dataset | str, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield what does not match, in the order in which it is looked at."""
    assert record.run is not None
    file = files.get(record.run.sha256)
    if file is None:
        same_name = next((path for path in files.values() if path.name == record.run.file), None)
        yield f"{same_name} is not the run of this record" if same_name else f"its run is not there: {record.run.file}"
        return
    if isinstance(dataset, str):
        yield dataset
        return
    told = record.dataset.model_dump(include={"name", "source", "task", "scenario"})  # matters of its card, not of data
    if dataset_facts(dataset).model_copy(update=told) != record.dataset or query_facts(dataset) != record.queries:
        yield f"what it says of {dataset.name} and its queries is not so"
    try:
        run = Run.read(file, encoded=True)
    except UserError as error:
        yield str(error)
        return
    if int(run.found.max(initial=0)) > record.run.depth:
        yield f"its run has more than {record.run.depth:,} documents for a query"
    yield from _wrong_scores(record, score(dataset.qrels, run, [Measure.parse(name) for name in record.mean]).per_query)
    if gold_ranks(dataset.qrels, run) != record.gold:
        yield "the ranks of its relevant documents are not those of its run"


def _wrong_scores(record: Record, computed: Mapping[str, Mapping[Measure, float]]) -> Iterator[str]:
    if computed.keys() != record.per_query.keys():
        yield "it scores other queries than are judged"
        return
    for query, values in computed.items():
        for measure, value in values.items():
            stated = record.per_query[query][str(measure)]
            if not math.isclose(stated, value, abs_tol=1e-9):
                yield f"{measure} of query {query} is {stated:.4f}, and its run gives {value:.4f}"
