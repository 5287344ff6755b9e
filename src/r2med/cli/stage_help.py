"""`r2med stages`: every stage that a system can be made of, and its settings, from the declarations alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format
from r2med.cli.formats import show as show_page

if TYPE_CHECKING:
    from r2med.core.stages import Kind, Setting
    from r2med.pages.page import Section

stages = typer.Typer(help="List and show stages: what systems are made of.", no_args_is_help=True)

FORM = {"expand": "{stage} → RETRIEVER", "retrieve": "{stage}", "rerank": "RETRIEVER → {stage}", "build": "{stage}"}
"""How a system with a stage of each kind is typed."""

PURPOSE = {
    "expand": "change the query before it is searched, as in hyde(o3-mini) → bm25",
    "retrieve": "search; several are joined by +, as in bm25+bge",
    "rerank": "put what was found into a better order, as in bm25 → bge-reranker@100",
    "build": "make a benchmark; steps are listed in a plan, see r2med build",
}

FORMS = {
    "hf:": ("hf:ORG/NAME", "A model of the hub that has no card."),
    "path:": ("path:DIR", "A model in a folder."),
    "py:": ("py:MODULE:NAME", "A Python object of your own."),
    "mteb:": ("mteb:ORG/NAME", "A model of MTEB's registry (extra mteb)."),
    "pyterrier:": ("pyterrier:MODULE:NAME", "A pipeline of PyTerrier (extra pyterrier)."),
    "run:": ("run:FILE", "The documents of a run file."),
}
"""Stages that have no name of their own."""


@stages.command("list")
def list_(form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Show every stage by kind: expand, retrieve, rerank."""
    from r2med.core.stages import KINDS
    from r2med.pages.cells import Column
    from r2med.pages.page import Note, Page, Section, Table

    rows = {kind: list(_rows(kind)) for kind in KINDS}
    columns = (Column("name", whole=True), Column("what it does"))
    sections = [Section(f"{kind}:", [Table(columns, rows[kind])], aside=PURPOSE[kind], aside_tone="") for kind in KINDS]
    sections.append(Section("", [Note("r2med stages show NAME prints the settings of one.", "quiet")]))
    value = [{"name": name, "kind": kind, "summary": text} for kind in KINDS for name, text in rows[kind]]
    show_page(Page("Stages", sections), form, as_json, value)


@stages.command()
def show(
    name: Annotated[
        str,
        typer.Argument(help="A name of the list, such as hyde, bm25 or groupwise.", autocompletion=completion.stages),
    ],
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Print what a stage does, how it is typed, and what each of its settings means."""
    from r2med.core.errors import UserError, nearest
    from r2med.core.stages import KINDS, names
    from r2med.pages.page import Page

    word = name.partition("(")[0].partition("@")[0].strip()  # as it stands in a system
    pages = [_page(word, kind) for kind in KINDS if _is_stage(word, kind)]
    if not pages:
        known = [known for kind in KINDS for known in names(kind)]
        raise UserError(f"no stage {word!r}{nearest(word, known)}: r2med stages list shows all")
    value = pages[0] if len(pages) == 1 else pages
    show_page(Page(word, [_section(page) for page in pages]), form, as_json, value)


def _section(page: dict[str, Any]) -> Section:
    from r2med.pages.cells import Column
    from r2med.pages.page import Note, Section, Table

    typed = Note(f"typed: {page['typed']}")
    aside = f"({page['kind']}): {page['summary']}"
    if not page["settings"]:
        return Section(page["name"], [typed, "It has no settings."], aside=aside, aside_tone="")
    rows = [
        (s["name"], s["default"] or _NO_DEFAULT[s["required"]], s["values"], s["meaning"]) for s in page["settings"]
    ]
    columns = (Column("setting", whole=True), Column("default"), Column("values"), Column("meaning"))
    return Section(page["name"], [typed, Note(""), Table(columns, rows)], aside=aside, aside_tone="")


_NO_DEFAULT = {True: "(needed)", False: ""}


def _rows(kind: Kind) -> Iterator[tuple[str, str]]:
    from r2med.core.stages import PREFIXES, names, stage_class

    for name in names(kind):
        yield name, stage_class(name, kind).summary(name)
    for prefix in PREFIXES[kind]:
        yield FORMS[prefix]


def _is_stage(name: str, kind: Kind) -> bool:
    from r2med.core.errors import UserError
    from r2med.core.stages import stage_class

    try:
        stage_class(name, kind)
    except UserError:
        return False
    return True


def _page(name: str, kind: Kind) -> dict[str, Any]:
    from r2med.core.stages import help_of, stage_class

    settings = list(help_of(name, kind))
    return {
        "name": name,
        "kind": kind,
        "summary": stage_class(name, kind).summary(name),
        "typed": FORM[kind].format(stage=_typed(name, settings)),
        "settings": [asdict(setting) for setting in settings],
    }


def _typed(name: str, settings: list[Setting]) -> str:
    """Return how a stage is typed, as in groupwise(LLM, SETTING=VALUE, …)@DEPTH."""
    arguments = [setting.name.upper() for setting in settings if setting.at == "argument"]
    if any(not setting.at for setting in settings):
        arguments.append("SETTING=VALUE, …")
    depth = "@DEPTH" if any(setting.at == "depth" for setting in settings) else ""
    return name + (f"({', '.join(arguments)})" if arguments else "") + depth
