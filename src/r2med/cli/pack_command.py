"""`r2med pack` and `r2med unpack`: pass on records with the vectors, texts, scores and rerankings behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.publication.packs.pack_manifest import PackManifest

_SAVED_NAMES = {
    "llm_calls": "calls of LLMs",
    "llm_tokens": "tokens of LLMs",
    "encoded_texts": "encoded texts",
    "encoder_seconds": "seconds of encoders",
    "dollars": "dollars",
}


@flags.with_runtime(*flags.WEIGHTS, "base_url", "llm_backend", "prompts", "recorded", "generations", "candidates")
def pack(
    records: flags.ComparedSystems = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File of the pack.")] = Path("run.r2pack"),
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PARTS",
            help="What the pack holds besides records: runs, texts, rerankings, pairs, vectors, answers and "
            "corpus, several with commas. Default: all except corpus.",
            show_default=False,
        ),
    ] = None,
    results: flags.Results = Path("results"),
    data: Annotated[
        list[str] | None,
        typer.Option(help="Folder of your own dataset. May be repeated.", rich_help_panel=flags.DATA),
    ] = None,
    corpus_licence: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Licence under which you may pass on the documents of a dataset whose card states none.",
            rich_help_panel=flags.DATA,
        ),
    ] = "",
    nuggets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file of nuggets that r2med answer was given. It goes into the pack with the answers.",
            show_default=False,
        ),
    ] = None,
    shown: Annotated[
        Path | None,
        typer.Option("--list", metavar="FILE", help="Show what a pack holds and saves. Pack nothing."),
    ] = None,
    form: Format = "text",
    as_json: flags.AsJSON = False,
    *,
    runtime: Runtime,
) -> None:
    """Write records with the vectors, texts, scores and rerankings behind them as one file.

    Give the flags of models and LLMs with which the records were made. Nothing is encoded or asked.
    """
    from r2med.foundation.store.files import sha256
    from r2med.publication.packs.pack_manifest import DEFAULT
    from r2med.publication.packs.packing import pack as write
    from r2med.publication.packs.unpacking import pack_commands
    from r2med.publication.packs.verified_pack import listed_pack

    if shown is not None:
        if records:
            raise UserError("--list shows a pack and takes no records: leave them out")
        with listed_pack(shown) as opened:
            manifest, commands = opened.manifest, list(pack_commands(opened, results))
        show_page(_page(manifest, shown, commands), form, as_json, manifest.model_dump(mode="json"))
        return
    if out.is_dir():
        raise UserError(f"{out} is a folder: name the file of the pack, such as -o {out}.r2pack")
    flags.check_writable(out.absolute().parent)
    kinds = flags.comma_separated(wanted) if wanted is not None else DEFAULT
    manifest = write(
        joined_words(records or []),
        out,
        kinds,
        results=results,
        data=flags.comma_separated(data),
        corpus_licence=corpus_licence,
        nuggets=nuggets or "",
        setup=runtime,
    )
    commands = [record.command for record in manifest.records]
    show_page(_page(manifest, out, commands), form, as_json, manifest.model_dump(mode="json"))
    if form == "text" and not as_json:
        print(printable(f"unpack it elsewhere with: r2med unpack {out.name} --sha256 {sha256(out)}"))


@flags.with_runtime("offline")
def unpack(
    file: Annotated[str, typer.Argument(metavar="FILE|URL", help="A pack, or the https:// address of one.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for records and runs.")] = Path("results"),
    data: Annotated[Path, typer.Option(help="Folder for the documents of a pack that holds them.")] = Path("data"),
    digest: Annotated[
        str, typer.Option("--sha256", metavar="DIGEST", help="SHA-256 of the pack. A URL needs it.")
    ] = "",
    keep_mine: Annotated[
        bool,
        typer.Option("--keep-mine", help="Keep what is here with another content, and take the rest of the pack."),
    ] = False,
    *,
    runtime: Runtime,
) -> None:
    """Verify a pack, and put it into the store. The commands of its records then need no GPU, key or network."""
    from r2med.publication.packs.unpacking import unpack as put

    unpacked = put(file, out, data=data, sha256=digest, keep_mine=keep_mine, store=runtime.store)
    known = f", {unpacked.known:,} were here already" if unpacked.known else ""
    print(printable(f"{unpacked.written:,} artefacts, rows and files written{known}"))
    for folder in unpacked.data:
        print(printable(f"documents: {folder}"))
    if unpacked.unscored:
        names = ", ".join(unpacked.unscored)
        print(printable(f"not scored: {names} is not on this machine; tables mark the records until r2med run has"))
    print("these commands read everything else from the pack:")
    for command in unpacked.commands:
        print(printable(f"  {command}"))


def _page(manifest: PackManifest, file: Path, typed: Sequence[str]) -> Page:
    """Return what a pack holds and what it saves."""
    from r2med.cli.cache_command import shown_bytes
    from r2med.foundation.pages.cells import Column, Value
    from r2med.foundation.pages.page import Note, Table, table_page

    counts, sizes = Counter(part.kind for part in manifest.parts), Counter[str]()
    for part in manifest.parts:
        sizes[part.kind] += part.size
    inside: list[list[Value]] = [[kind, counts[kind], shown_bytes(sizes[kind])] for kind in sorted(counts)]
    datasets: list[list[Value]] = [
        [each.name, each.licence or "not stated", each.source or "own data"] for each in manifest.datasets
    ]
    saved: list[list[Value]] = [[_SAVED_NAMES.get(name, name), f"{value:,g}"] for name, value in manifest.saves.items()]
    commands: list[list[Value]] = [[command] for command in dict.fromkeys(typed)]
    size = file.stat().st_size if file.is_file() else 0
    head = f"{file.name}: {counted(len(manifest.records), 'record')}, {shown_bytes(size)}, by r2med {manifest.r2med}"
    tables = [
        Table((Column("part"), Column("files", "integer"), Column("size", "number")), inside),
        Table((Column("dataset"), Column("licence"), Column("source")), datasets),
        Table((Column("it saves"), Column("amount", "number")), saved),
        Table((Column("command", whole=True),), commands),
    ]
    notes = [Note(head, whole=True), *(Note(line, "warning") for line in _warnings(manifest))]
    return table_page("Pack", *(table for table in tables if table.rows), notes=notes)


def _warnings(manifest: PackManifest) -> Iterator[str]:
    """Yield what a person should know before passing on a pack of data without a licence."""
    named = ", ".join(each.name for each in manifest.datasets if not each.licence)
    if named and any(part.kind in ("vectors", "texts", "rerankings", "answers") for part in manifest.parts):
        yield (
            f"The licence of {named} is not stated. Vectors and answers of LLMs can reveal the texts behind them: "
            "pass this pack on only to people who may read those."
        )
