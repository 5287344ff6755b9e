"""`r2med analyse`: analyse a benchmark and its results beyond scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime


@flags.with_runtime(
    *flags.WEIGHTS, "llm", "base_url", "llm_backend", "concurrency", "ask_again", "budget", *flags.TRACE
)
def analyse(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Analyses. Default: all that ask no LLM.", show_default=False),
    ] = None,
    data: flags.Data = None,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            metavar="SYSTEM|RECORD|FOLDER",
            help="Analyse only these records. May be repeated.",
            show_default=False,
        ),
    ] = None,
    results: flags.Results = Path("results"),
    measure: flags.OneMeasure = "nDCG@10",
    max_failures: flags.MaxFailures = 0.1,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="An embedding model. The analysis overlap then also measures the cosine of its vectors.",
            show_default=False,
            autocompletion=completion.models,
            rich_help_panel=flags.MODELS,
        ),
    ] = "",
    below: Annotated[
        list[float] | None,
        typer.Option(
            min=-1.0,
            max=1.0,
            help="Count the queries with less overlap than this (overlap). May be repeated. Default: 0.1, 0.2, 0.3 and "
            "0.5.",
        ),
    ] = None,
    synonyms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table of synonyms: MeSH, or a CSV file with the columns concept and term. The analysis difficulty "
            "then shows which concepts relevant documents write in other words.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        int,
        typer.Option(
            min=0,
            help="Queries or documents per dataset that the LLM is asked about. 0 means all queries, and a sample of "
            "50 documents (contamination).",
            rich_help_panel=flags.LLMS,
        ),
    ] = 0,
    all_documents: Annotated[
        bool,
        typer.Option(
            "--all-documents",
            help="Ask the LLM about all documents instead of a sample (contamination).",
            rich_help_panel=flags.LLMS,
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the page and its CSV files.", rich_help_panel=flags.OUTPUT)
    ] = Path("analysis"),
    dry_run: Annotated[
        bool,
        typer.Option(
            "--plan",
            callback=flags.begin_plan,
            help="Print the calls, their cost and three prompts. No LLM is asked.",
            rich_help_panel=flags.OUTPUT,
        ),
    ] = False,
    form: Format = "text",
    as_json: flags.AsJSON = False,
    *,
    runtime: Runtime,
) -> None:
    """Analyse a benchmark and its results: one page, and a CSV file for every table of it."""
    from dataclasses import replace

    from r2med.analysis.analysis import analyse as run
    from r2med.analysis.analysis import checked_names, rehearse
    from r2med.cli.plan_output import show_previews
    from r2med.cli.progress import steps
    from r2med.foundation.pages.page import Note, Section

    wanted = checked_names(names or [])
    material: dict[str, Any] = {
        "data": flags.dataset_names(data) if data else (),
        "systems": systems or (),
        "results": results,
        "measure": measure,
        "max_failures": max_failures,
        "model": model,
        "thresholds": below or (),
        "synonyms": synonyms,
        "queries": queries,
        "all_documents": all_documents,
    }
    if dry_run:
        show_previews(rehearse(*wanted, setup=runtime, **material), runtime)
        return
    flags.check_writable(out)
    with steps(len(wanted)) as step:
        done = run(*(names or ()), out=out, setup=runtime, announce=step, **material)
    page = done.page
    if form == "text" and not as_json:  # the tables are on the page that was written
        leads = [Section(each.title, (), each.lead, each.notes) for each in page.sections]
        files = Note(f"{done.files[0]}, with {counted(len(done.files) - 1, 'CSV file')} beside it", whole=True)
        page = replace(page, sections=[*leads, Section("", [files])])
    show_page(replace(page, has_files=False), form, as_json)
