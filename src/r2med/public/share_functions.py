"""Leaderboards and packs: write an entry or a pack, check an entry, take a pack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from r2med.foundation.core.flags import DATA, Argument, Flag, SetupFlags, as_list
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.foundation.store import Store
    from r2med.publication.leaderboard.submission import Entry
    from r2med.publication.leaderboard.verification import Verification
    from r2med.publication.packs.pack_file import PackManifest
    from r2med.publication.packs.unpacking import Unpacked


def submit(
    records: Annotated[str | Path | Sequence[str | Path] | None, flags.COMPARED_SYSTEMS] = None,
    out: Annotated[str | Path, Flag("File of the entry.", names=("--out", "-o"), metavar="FILE")] = "entry.json",
    results: Annotated[str | Path, flags.RESULTS] = "results",
    max_failures: Annotated[float, flags.MAX_FAILURES] = 0.1,
) -> Entry:
    """Write records as one entry: systems, settings, scores and hashes of runs; no texts, no paths, no keys.

    `records` are record files, folders, or names of systems in `results`. Answer records in these folders and of these
    systems are part of the entry. In names and settings, a path is cut to its last part, and an address is replaced by
    a digest. Raises UserError if a run or the answers of a record are missing or were changed.
    """
    from r2med.evaluation.records.collection import given_records
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.store.files import check_writable
    from r2med.publication.leaderboard.submission import write_entry

    if Path(out).suffix != ".json":
        raise UserError(f"out (--out) {out}: the name of an entry ends with .json, by which r2med board finds it")
    check_writable(Path(out).parent, "out (--out)")
    return write_entry(given_records(records), Path(out), Path(results), max_failures)


def verify(
    entries: Annotated[
        str | Path | Sequence[str | Path], Argument("Files of r2med submit, or folders of them.", metavar="ENTRY")
    ],
    runs: Annotated[
        str | Path, Flag("A folder with their run files, files of answers and locks, at any depth.", metavar="DIR")
    ] = "results",
    data: Annotated[
        str | Path | Dataset | Sequence[str | Path | Dataset] | None,
        Flag("Folders of datasets that have no card. May be repeated.", metavar="NAME"),
    ] = None,
    verdicts: Annotated[
        str | Path | None, Flag("Write the results to this file, which r2med board reads.", metavar="FILE")
    ] = None,
    store: Store | None = None,
) -> list[Verification]:
    """Compute the scores of entries again from their runs and answers, and refuse what does not match.

    `entries` are files, or folders whose JSON files are all checked, at any depth. A bad entry does not stop the
    others. Run files, files of answers and locks are found by their content anywhere below `runs`. Datasets are found
    by name: in `data`, in the benchmark or in the demo. Of answer records, all is computed again that needs no LLM.
    Raises UserError if the file `verdicts` is inside a folder of entries or runs.
    """
    from r2med.data.dataset_word import given_data
    from r2med.data.loading import loaded
    from r2med.foundation.store import default_store
    from r2med.publication.leaderboard.verification import verified_entries

    opened = store or default_store()
    given = [loaded(source, opened) for source in given_data(data)]
    places = list(map(Path, as_list(entries)))
    return verified_entries(places, Path(runs), given, opened, Path(verdicts) if verdicts is not None else None)


def pack(
    records: Annotated[str | Path | Sequence[str | Path] | None, flags.COMPARED_SYSTEMS] = None,
    out: Annotated[str | Path, Flag("File of the pack.", names=("--out", "-o"), metavar="FILE")] = "run.r2pack",
    *,
    vectors: Annotated[bool, Flag("Leave out the vectors of documents and queries.")] = True,
    results: Annotated[str | Path, flags.RESULTS] = "results",
    data: Annotated[
        str | Path | Dataset | Sequence[str | Path | Dataset] | None,
        Flag("Folder of your own dataset. May be repeated.", DATA, metavar="DIR", kind=str, read=flags.comma_separated),
    ] = None,
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(*flags.WEIGHTS, *flags.LLM_SETTINGS, "recorded", "generations", "candidates"),
    ] = None,
    **settings: Any,
) -> PackManifest:
    """Write records with the vectors, texts, scores and rerankings behind them as one file.

    Give the settings of models and LLMs with which the records were made. Nothing is encoded or asked. `records` are
    record files, folders, or names of systems in `results`. Answer records that were read from them are inside, too.
    Without `vectors`, the other machine has the rankings, but cannot search to another depth. Documents, and the files
    that you gave, are not inside. Raises UserError if the store no longer has what a record needs, or if the pack would
    hold a secret. `settings` are fields of `Setup`.
    """
    from r2med.data.dataset_word import given_data
    from r2med.evaluation.records.collection import given_records
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store.files import check_writable
    from r2med.publication.packs.packing import write_pack

    file = Path(out)
    if file.is_dir():
        raise UserError(f"{out} is a folder: name the file of the pack, such as out (--out {out}.r2pack)")
    check_writable(file.absolute().parent, "out (--out)")
    with running(setup, **settings) as runtime:
        given = given_records(records)
        return write_pack(given, file, runtime, results=Path(results), data=given_data(data), vectors=vectors)


def unpack(
    file: Annotated[str | Path, Argument("A pack, or the https:// address of one.", metavar="FILE|URL", kind=str)],
    out: Annotated[str | Path, Flag("Folder for records and runs.", names=("--out", "-o"), metavar="DIR")] = "results",
    *,
    sha256: Annotated[str | None, Flag("SHA-256 of the pack. A URL needs it.", metavar="DIGEST")] = None,
    setup: Annotated[Setup | Runtime | None, SetupFlags("offline")] = None,
    store: Store | None = None,
) -> Unpacked:
    """Check a pack, and put it into the store. The commands of its records then need no GPU, key or network.

    What is here already is left as it is. Runs and answers are scored again with their dataset, if it is on this
    machine. Raises UserError if the pack is damaged or hostile, or if a record has other scores than its run; then
    nothing is written.
    """
    from r2med.foundation.runtime.runtime import running
    from r2med.publication.packs.unpacking import unpack_file

    with running(setup) as runtime:
        return unpack_file(str(file), Path(out), sha256 or "", store or runtime.store)
