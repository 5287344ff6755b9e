"""Records in the formats of other tools: export them, and import them from there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from r2med.foundation.core.flags import Argument, Flag
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset
    from r2med.evaluation.records.record import Record


def import_records(
    file: Annotated[str | Path, Argument("MTEB's TASK_predictions.json.", metavar="FILE")],
    data: Annotated[
        str | Path | Dataset | None,
        Flag("A dataset or a folder. Default: the dataset of the task.", completion="datasets"),
    ] = None,
    out: Annotated[str | Path, Flag("The folder of the records.", names=("--out", "-o"), metavar="DIR")] = "results",
) -> Record:
    """Score predictions of MTEB and store them as a record with its run.

    Raises UserError if the file has the wrong form, or names queries or documents that the dataset does not have.
    """
    from r2med.publication.bridges.mteb_predictions import score_predictions

    return score_predictions(file, "" if data is None else data, out)


def export_records(
    *systems: Annotated[str | Path | Sequence[str | Path], flags.COMPARED_SYSTEMS],
    layout: Annotated[
        Literal["runs", "mteb"],
        Flag(
            "runs: TREC files that trec_eval reads (DATASET/SYSTEM-KEY.trec), one for each repeat. "
            "mteb: MTEB's cache of results (results/ORG__MODEL/REVISION/TASK.json), means over repeats.",
            names=("--format",),
            metavar="NAME",
            kind=str,
        ),
    ] = "runs",
    out: Annotated[
        str | Path | None,
        Flag("The folder to write. Default: the name of the format.", names=("--out", "-o"), metavar="DIR"),
    ] = None,
    results: Annotated[str | Path, flags.RESULTS] = "results",
    max_failures: Annotated[float, flags.MAX_FAILURES] = 0.1,
) -> list[Path]:
    """Write records in the format of another tool: trec_eval or MTEB.

    `systems` are record files, folders, or names of systems in `results`. Returns the new files. Raises UserError if
    the run file of a record is missing or was changed, or if a record has no task in MTEB.
    """
    from r2med.evaluation.records.collection import given_records
    from r2med.evaluation.running.run_export import export_runs
    from r2med.foundation.core.errors import unknown
    from r2med.foundation.store.files import check_writable
    from r2med.publication.bridges.mteb_results import export_results

    if layout not in (layouts := ("runs", "mteb")):
        raise unknown("format", layout, layouts)
    folder, sources = Path(out or layout), given_records(*systems)
    check_writable(folder, "out (--out)")
    if layout == "runs":
        return export_runs(sources, folder, results, max_failures)
    return export_results(sources, folder, results, max_failures)
