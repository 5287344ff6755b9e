"""Score the rankings of records again with the labels of overlays. The records themselves stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from r2med.data.dataset import Dataset
from r2med.data.dataset_word import GivenData, data_words
from r2med.data.overlays import Overlay, add_labels
from r2med.data.runs.trec import read_judged_run
from r2med.evaluation.measure import relevant_ranks
from r2med.evaluation.records.dataset_facts import scored_facts
from r2med.evaluation.records.local_datasets import local_datasets, typed_places
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, digest


def relabelled(
    collection: RecordCollection, overlays: Sequence[Overlay], datasets: Mapping[str, Dataset]
) -> RecordCollection:
    """Return the records of the datasets that the overlays label, with new scores and the names NAME+OVERLAY.

    `datasets` are those of the records, by name. Raises UserError if the overlays
    label none of the records' datasets, or if a ranking is missing.
    """
    wanted = {name for overlay in overlays for name in overlay.datasets}
    changed = {name: add_labels(datasets[name], overlays) for name in datasets if name in wanted}
    changed = {name: dataset for name, dataset in changed.items() if dataset.overlays}
    cells = [_relabelled(kept, changed[name]) for (_, name), kept in collection.cells.items() if name in changed]
    if not cells:
        known = ", ".join(sorted(wanted))
        raise UserError(f"the overlays label {known}, and no record is on them: run a system on them first")
    return RecordCollection({(kept.record.display_name, kept.record.dataset.name): kept for kept in cells})


def recorded_datasets(
    collection: RecordCollection, data: Sequence[GivenData], store: Store | None = None
) -> dict[str, Dataset]:
    """Return the datasets of records to label again. `data` are folders, or names that restrict the datasets.

    Raises UserError if no record is on one of `data`, because all datasets would then be labelled, or if no
    dataset is on this machine.
    """
    named = set(typed_places(data, store)) & set(collection.datasets)
    if data and not named:
        raise UserError(
            f"no record is on {', '.join(data_words(data))}: the records are on {', '.join(collection.datasets)}"
        )
    # Records that were scored with an overlay keep their labels, unless their dataset is named.
    published = {kept.record.dataset.name for kept in collection if not kept.record.dataset.overlays}
    found = local_datasets(collection.on(named or published), data, store)
    if not found:
        lost = ", ".join(sorted(named) or collection.datasets)
        raise UserError(
            f"{lost}: not on this machine, or changed since the records were made: name its folder: data (--data)",
        )
    return found


def _relabelled(kept: StoredRecord, dataset: Dataset) -> StoredRecord:
    if (file := kept.run_file) is None:
        raise UserError(f"{kept.path} has no ranking beside it, so it cannot be scored: {kept.how_to_make_it_again}")
    run = read_judged_run(file, dataset.qrels)
    stages = list(kept.record.stages)
    stages[-1] = stages[-1].model_copy(update={"gold": relevant_ranks(dataset.qrels, run)})
    record = kept.record.model_copy(
        update={
            "key": digest(["relabelled", kept.record.key, [overlay.digest for overlay in dataset.overlays]]),
            "stages": tuple(stages),
            **scored_facts(dataset, run, kept.record.mean),
        }
    )
    return replace(kept, record=record, later=tuple(_relabelled(each, dataset) for each in kept.later))
