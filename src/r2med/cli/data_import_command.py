"""`r2med data import`: make a dataset from the user's own tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.foundation.core.errors import UserError
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.data.tables.columns import Part
    from r2med.data.tables.importing import Import

SHOWN = 3
"""Number of rows of each table that are shown."""
LETTERS = 60
"""Characters of a cell that are shown."""
UNUSED = 20
"""Number of unused columns that are named."""

DOCUMENTS, QUESTIONS = "Columns of documents", "Columns of questions and judgements"


def _column(flag: str, meaning: str, panel: str) -> Any:
    return typer.Option("", f"--{flag}", metavar="COLUMN", help=meaning, show_default=False, rich_help_panel=panel)


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="CSV, TSV, JSON, JSON Lines, Parquet, Excel or OpenDocument.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The new folder.", show_default=False)],
    id: str = _column("id", "The id of a document.", DOCUMENTS),
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="The text of a document. May be repeated: the columns are joined under their headings.",
            show_default=False,
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    title: str = _column("title", "The title of a document. It is searched as well.", DOCUMENTS),
    query: str = _column("query", "The question.", QUESTIONS),
    query_id: str = _column("query-id", "The id of the question.", QUESTIONS),
    answer: str = _column("answer", "The reference answer. Retrieval never sees it.", QUESTIONS),
    relevant: str = _column("relevant", "The ids of relevant documents. A cell can hold several.", QUESTIONS),
    grade: str = _column("grade", "The grade of the relevant documents.", QUESTIONS),
    no_grade: Annotated[
        bool,
        typer.Option(
            "--no-grade",
            help="No column holds grades: every document that is named is relevant.",
            rich_help_panel=QUESTIONS,
        ),
    ] = False,
    header: Annotated[
        bool | None,
        typer.Option(help="The first row holds column names, or not. Default: detected.", show_default=False),
    ] = None,
    skip_rows: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of rows above the column names. May be repeated, once per file. Default: detected.",
            show_default=False,
        ),
    ] = None,
    sheet: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A sheet of a workbook. May be repeated. Default: all sheets with tables.",
            show_default=False,
        ),
    ] = None,
    encoding: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Encoding of CSV and similar files, such as gb18030 or cp1251. Default: detected.",
            show_default=False,
        ),
    ] = "",
    keep_markup: Annotated[
        bool, typer.Option("--keep-markup", help="Take texts of HTML or RTF as they are, with their markup.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Replace the dataset that an earlier import wrote into the folder.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask if the columns are right.")] = False,
) -> None:
    """Make a dataset from your own tables of documents and, if you have them, questions and judgements."""
    import shlex

    from r2med.data.check import check
    from r2med.data.tables.imported_folder import removed_texts, require_imported
    from r2med.data.tables.importing import UPDATE_ADVICE, plan_import, require_new
    from r2med.foundation.store import default_store

    if not (update and require_imported(out)):
        require_new(out, UPDATE_ADVICE)
    plan = plan_import(
        files,
        header=header,
        skip_rows=skip_rows,
        sheets=sheet or (),
        encoding=encoding,
        keep_markup=keep_markup,
        id=id,
        text=text or (),
        title=title,
        query=query,
        query_id=query_id,
        answer=answer,
        relevant=relevant,
        grade=grade,
        no_grade=no_grade,
    )
    _show(plan)
    asked = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    if asked and not typer.confirm("Is that right?", default=True):
        raise UserError(
            "nothing was written: name the columns, as in --id COLUMN --text COLUMN (r2med data import --help)"
        )
    with removed_texts(out, default_store()):
        plan.write(out, update=update)
    problems = check(out)
    for line in (*problems.lines(), *(f"note: {notice}" for notice in problems.notices)):
        print(printable(line))
    folder = shlex.quote(str(out))
    judged = (out / "qrels.jsonl").is_file()
    following = _next_command(folder, judged, plan.language.code if plan.language else "en")
    clearing = f"r2med cache clear --dataset {folder} --yes"
    print(printable(f"The cache holds a copy of its texts ({default_store().root}). To remove it: {clearing}"))
    print(f"{printable(str(out))} is written. Next: {printable(following)}")
    if problems.problems:
        raise typer.Exit(2)


def _show(plan: Import) -> None:
    """Print three rows of each table under the roles of its columns, then the unused columns and the counts."""
    from r2med.cli.console import console, plain
    from r2med.foundation.pages.page import Table
    from r2med.foundation.pages.terminal_tables import print_table
    from r2med.foundation.runtime.typed_notices import as_typed
    from r2med.foundation.text.plurals import counted

    output = console()
    notices = plan.notices  # before anything is printed: what cannot be read ends here
    for part in plan.parts:
        output.print(plain(f"{part.table}: {part.kind}", "bold"))
        print_table(Table.of(_heads(part), _rows(part)), output, {})
        used = {*part.columns.values(), *part.texts, *part.matrix}
        unused = [column for column in part.table.columns if column not in used]
        if unused:
            output.print(plain(f"not used: {', '.join(unused[:UNUSED])}{', …' if len(unused) > UNUSED else ''}", "dim"))
        output.print()
    for notice in notices:
        output.print(plain(f"note: {as_typed(notice)}"), soft_wrap=True)
    output.print(plain(_counts(plan)), soft_wrap=True)
    if guess := plan.language:
        sample = counted(guess.texts, "document")
        output.print(plain(f"The text looks {guess.name} ({guess.share:.0%} of {sample})"), soft_wrap=True)


def _next_command(folder: str, judged: bool, language: str) -> str:
    """Return the command that searches the new dataset, with the analysis of its language."""
    if language == "en":
        return f"r2med run bm25 --data {folder}" if judged else f"r2med search {folder} 'a question'"
    system = f"'bm25(language={language})'"
    return f"r2med run {system} --data {folder}" if judged else f"r2med search {folder} 'a question' --system {system}"


def _counts(plan: Import) -> str:
    counts = [f"{number:,} {kind.removesuffix('s') if number == 1 else kind}" for kind, number in plan.counts.items()]
    return f"{', '.join(counts)} ({plan.relevant:,} relevant)" if plan.counts["judgements"] else ", ".join(counts)


def _heads(part: Part) -> list[str]:
    columns = {**part.columns, **({"text": " + ".join(part.texts)} if part.texts else {})}
    return [f"{role.replace('_', '-')} = {column}" for role, column in columns.items()]


def _rows(part: Part) -> list[list[str]]:
    rows = [list(part.cells(row).values()) for row in part.table.sample[:SHOWN]]
    texts = [[cell if isinstance(cell, str) else "; ".join(cell) for cell in row] for row in rows]
    short = [[" ".join(cell[: 4 * LETTERS].split()) for cell in row] for row in texts]
    return [[f"{cell[: LETTERS - 1]}…" if len(cell) > LETTERS else cell for cell in row] for row in short]
