"""What `r2med submit`, `verify`, `pack` and `unpack` show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import Shown
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable, quoted

if TYPE_CHECKING:
    from r2med.publication.leaderboard.submission import Entry
    from r2med.publication.leaderboard.verification import Verification
    from r2med.publication.packs.pack_file import PackManifest
    from r2med.publication.packs.unpacking import Unpacked


def show_entry(entry: Entry, records: Sequence[str] | None, out: str | Path, results: str | Path) -> None:
    """Show what an entry contains, and how it is checked."""
    names = [*(record.display_name for record in entry.records), *(record.system for record in entry.answers)]
    systems = dict.fromkeys(names)
    answers = f" and {counted(len(entry.answers), 'answer record')}" if entry.answers else ""
    print(printable(f"{out}: {counted(len(entry.records), 'record')}{answers} of {', '.join(systems)}"))
    runs = next((each for each in records or () if Path(each).is_dir()), results)
    print(printable(f"check it with: r2med verify {quoted(out)} --runs {quoted(runs)}"))


def show_verifications(checked: Sequence[Verification], form: str) -> Shown:
    """Show the verdict on each record. The command ends with 1 if a record does not match."""
    from r2med.foundation.pages.page import Page, Paragraph, Section, Table

    heads = ("entry", "system", "dataset", "verdict")
    table = Table.of(heads, [(str(each.entry), each.system, each.dataset, each.verdict) for each in checked])
    lines = [Paragraph(str(each), no_wrap=True) for each in checked]
    value = [{**vars(each), "entry": str(each.entry)} for each in checked]
    page = Page("Entries checked against their runs", [Section("", lines if form == "text" else [table])])
    return Shown(page, value, code=1 if any(each.fault for each in checked) else 0)


def show_pack(manifest: PackManifest, out: str | Path, form: str) -> Shown:
    """Show what a pack holds, and how it is unpacked."""
    from dataclasses import replace

    from r2med.foundation.pages.page import Paragraph, Section
    from r2med.foundation.store.files import sha256
    from r2med.publication.packs.pack_file import pack_page

    file = Path(out)
    page = pack_page(manifest, file)
    if form == "text":
        how = f"unpack it elsewhere with: r2med unpack {quoted(file.name)} --sha256 {sha256(file)}"
        page = replace(page, sections=[*page.sections, Section("", [Paragraph(how, no_wrap=True)])])
    return Shown(page, manifest.model_dump(mode="json"))


def show_unpacked(unpacked: Unpacked) -> None:
    """Show what was written, and the commands that now need nothing else."""
    known = f", {unpacked.known:,} were here already" if unpacked.known else ""
    print(printable(f"{unpacked.written:,} artefacts, rows and files written{known}"))
    if unpacked.unscored:
        names = ", ".join(unpacked.unscored)
        print(printable(f"not scored again: {names} is not on this machine, so scores are those that the pack states"))
    print("these commands read everything else from the pack:")
    for command in unpacked.commands:
        print(printable(f"  {command}"))
