"""`r2med cache`: list, check and remove the artefacts that are kept on this machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.evaluation.records.quoting_files import Hashes
    from r2med.foundation.store import Store

cache = typer.Typer(help="List, check and clear the artefacts that are kept for later runs.", no_args_is_help=True)

DAMAGED = 1
"""The exit code where something was damaged."""


@cache.command("list")
def list_(form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Show the kept artefacts by kind, dataset and model, and the answers of each LLM."""
    from r2med.foundation.pages.cells import Column, Value
    from r2med.foundation.pages.page import Note, Table, table_page
    from r2med.foundation.store import default_store
    from r2med.foundation.store.holdings import holdings
    from r2med.models.llm.journal import answers_by_model

    store = default_store()
    held, answers = holdings(store), {model: len(keys) for model, keys in answers_by_model(store).items()}
    rows: list[list[Value]] = [[h.kind, h.dataset, h.model, len(h.paths), shown_bytes(h.size)] for h in held]
    rows += [["answers", "", model, count, ""] for model, count in answers.items()]
    numbers = (Column("number", "integer"), Column("size", "number"))
    columns = (Column("kind"), Column("dataset"), Column("model"), *numbers)
    total = Note(f"{shown_bytes(sum(h.size for h in held))} in {store.root}", whole=True)
    kept = [{"kind": h.kind, "dataset": h.dataset, "model": h.model, "bytes": h.size} for h in held]
    page = table_page("Kept on this machine", Table(columns, rows), notes=[total])
    show_page(page, form, as_json, {"folder": str(store.root), "kept": kept, "answers": answers})


@cache.command()
def clear(
    dataset: Annotated[
        str,
        typer.Option(help="Remove everything that was computed for this dataset.", autocompletion=completion.datasets),
    ] = "",
    model: Annotated[
        str, typer.Option(help="Remove vectors and scores of this model.", autocompletion=completion.models)
    ] = "",
    llm: Annotated[
        str,
        typer.Option(
            help="Remove the answers of this LLM. To get them again costs money again.", autocompletion=completion.llms
        ),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Remove everything except answers of LLMs and embedding APIs.")
    ] = False,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            "--results",
            metavar="DIR",
            help="With --dataset: also remove records with texts of the dataset, and boards that show it, from this "
            "folder, and list all other files in it that quote the dataset. May be repeated.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove the artefacts. Without this flag they are only counted.")
    ] = False,
) -> None:
    """Remove what is kept of a dataset, a model or an LLM. It is computed or requested again when it is needed.

    With --dataset alone, no text of the dataset stays in the cache: LLM answers about it are removed too. Files in
    folders of results are kept, unless these are named with --results. Your own files in such a folder (traces, packs,
    exports, overlays, …) are never removed: those that quote the dataset are listed.
    """
    from r2med.evaluation.records.dataset_texts import dataset_texts
    from r2med.evaluation.records.quoting_files import text_hashes
    from r2med.foundation.store import default_store
    from r2med.foundation.store.holdings import clear as remove
    from r2med.foundation.store.holdings import (
        clear_texts,
        clear_unfinished,
        dataset_labels,
        holdings,
        rows_about,
        same_corpus,
        unfinished,
    )
    from r2med.foundation.store.memo import MEMOS
    from r2med.models.llm.journal import answers_by_model, forget_answers

    if not (dataset or model or llm or everything):
        raise UserError(
            "say what to clear: --dataset NAME, --model NAME, --llm NAME or --all; r2med cache list shows it"
        )
    if results and (not dataset or model):
        raise UserError("--results removes the texts of a dataset: name it with --dataset, without --model")
    store = default_store()
    answers = answers_by_model(store)
    if llm and llm not in answers:
        raise unknown("answers of", llm, answers)
    labels = _labels(dataset, store) if dataset else [""]
    texts = bool(dataset and not model)
    datasets = same_corpus(store, labels) if texts else labels
    held = [holding for holding in holdings(store) if any(holding.is_about(name, model) for name in datasets)]
    named = dataset or model
    wanted = [holding for holding in held if named or (everything and holding.kind != "api")]
    parts = [f"{counted(sum(len(h.paths) for h in wanted), 'artefact')} ({shown_bytes(sum(h.size for h in wanted))})"]
    for file, keys in rows_about(store, datasets).items() if texts else ():
        parts.append(f"{len(keys):,} {MEMOS[file.parent.name].rows}")
    if llm:
        parts.append(f"{counted(len(answers[llm]), 'answer')} of {llm}")
    if left := unfinished(store) if texts or everything else []:
        parts.append(counted(len(left), "unfinished piece of work", "unfinished pieces of work"))
    others = {path.name for h in holdings(store) if h.kind == "corpus" and h not in held for path in h.paths}
    files = _result_files(results or [], dataset, labels, others)
    found = dataset_texts(store, datasets, [Path(dataset).expanduser()]) if results else ()
    hashes = text_hashes(found)  # before the texts are removed
    if named and not (wanted or parts[1:] or files or len(hashes)):
        # a misspelt name must not look as if its texts were gone
        names = dataset_labels(store) if dataset else sorted({holding.model for holding in holdings(store)} - {""})
        raise unknown("dataset in the cache" if dataset else "model in the cache", named, names)
    if yes:
        for holding in wanted:
            remove(store, holding)
        if llm:
            forget_answers(store, answers[llm])
        if texts:
            clear_texts(store, datasets)
        for path in files:
            path.unlink(missing_ok=True)
        for living in clear_unfinished(store) if texts or everything else ():
            print(printable(f"{living} is still at work and keeps its files: end it, then clear again"))
    if {*datasets} - {*labels}:
        print(printable(f"these datasets have the same documents, and go together: {', '.join(datasets)}"))
    for path in files:
        print(printable(f"{'removed' if yes else 'would be removed'}: {path}"))
    if files:
        parts.append(counted(len(files), "file of results and boards", "files of results and boards"))
    if results:
        _print_quoting_files(results, dataset, hashes, [*files, store.root])
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    print(printable(f"{listed} {'removed' if yes else 'would be removed: add --yes to do it'}"))


def _labels(word: str, store: Store) -> list[str]:
    """Return the labels of the dataset that a word means: a name, or a folder that may be gone."""
    from r2med.data.loading import name_of
    from r2med.foundation.store.dataset_labels import labels_of
    from r2med.foundation.store.holdings import dataset_labels

    word = word.removeprefix("irds:")
    folder = Path(word).expanduser()
    is_folder = folder.is_dir() or len(folder.parts) > 1
    known = dataset_labels(store)
    name = name_of(word, store)
    return labels_of(name, folder if is_folder else None, known) or [name]


def _result_files(folders: Sequence[Path], word: str, labels: Sequence[str], others: Collection[str]) -> list[Path]:
    """Return the files in folders of results that hold texts of a dataset, and the records that name them.

    `others` are the fingerprints of other corpora. Records about them stay, because two datasets may have one name.
    """
    from r2med.data.loading import name_of
    from r2med.evaluation.records.text_files import files_with_texts
    from r2med.foundation.store.dataset_labels import name_in
    from r2med.publication.site.board_texts import boards_with_texts

    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder: name a folder of results or of a board")
    names = {name_of(word), Path(word).name, *map(name_in, labels)}
    found = [
        path
        for folder in folders
        for path in (*files_with_texts(folder, names, others), *boards_with_texts(folder, names))
    ]
    return list(dict.fromkeys(found))


def _print_quoting_files(folders: Sequence[Path], word: str, hashes: Hashes, leave_out: Sequence[Path]) -> None:
    """Print the other files below folders of results that quote a dataset. They may be anything, so they stay."""
    from r2med.evaluation.records.quoting_files import quoting_files

    if not len(hashes):
        print(printable(f"the texts of {word} are not on this machine, so other files were not searched for them"))
        return
    found = quoting_files(folders, hashes, leave_out)
    for path in found.quoting:
        print(printable(f"still holds texts of {word}, delete it yourself: {path}"))
    for path in found.unread:
        print(printable(f"could not be searched: {path}"))


@cache.command()
def verify(
    repair: Annotated[
        bool, typer.Option("--repair", help="Remove damaged artefacts. They are computed again when they are needed.")
    ] = False,
) -> None:
    """Read every file of the store byte by byte, and report damaged ones."""
    from r2med.cli.progress import steps
    from r2med.foundation.engine.reporting import Reporter
    from r2med.foundation.store import default_store
    from r2med.foundation.store.holdings import verify_store
    from r2med.foundation.store.manifest import MANIFEST

    store = default_store()
    total = sum(1 for pattern in (f"*/*/{MANIFEST}", "**/*.sqlite") for _ in store.root.glob(pattern))
    sound = size = 0
    damaged = []
    with steps(1) as step:
        step(f"checking {store.root}")
        reporter = Reporter("artefacts", total)
        for verified in verify_store(store, mend=repair):
            reporter.advance(1)
            size += verified.size
            if verified.fault:
                damaged.append(verified)
            else:
                sound += 1
    for verified in damaged:
        print(printable(f"damaged: {verified.path}: {verified.fault} ({_remedy(verified.kind, repair)})"))
    fine = counted(sound, "artefact is sound", "artefacts are sound")
    print(printable(f"{store.root}: {fine}, {len(damaged):,} damaged; {shown_bytes(size)}"))
    if damaged:
        raise typer.Exit(DAMAGED)


def _remedy(kind: str, repair: bool) -> str:
    """Return what happens to a damaged artefact or to a damaged table of rows."""
    if kind == "rows":
        return "sound rows are kept, the others are made again when they are next needed"
    if repair:
        return "it was removed, and is made again when it is next needed"
    return "r2med cache verify --repair removes it, and it is made again when it is next needed"


def shown_bytes(number: float) -> str:
    """Return a number of bytes with three digits and a unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
