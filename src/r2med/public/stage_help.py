"""The help pages of stages, made from their declarations: what each does, how it is typed, what its settings mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.names import BUILT_IN_STAGES, Kind, known_names, stage_class

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Section
    from r2med.public.stage_settings import StageSetting

FORM: Mapping[Kind, str] = {
    "expand": "{stage} → RETRIEVER",
    "retrieve": "{stage}",
    "rerank": "RETRIEVER → {stage}",
    "build": "{stage}",
}
"""How a system with a stage of each kind is typed."""

PURPOSE: Mapping[Kind, str] = {
    "expand": "change the query before it is searched, as in hyde(o3-mini) → bm25",
    "retrieve": "search; several are joined by +, as in bm25+bge",
    "rerank": "put what was found into a better order, as in bm25 → bge-reranker@100",
    "build": "make a benchmark; steps are listed in a plan, see r2med build",
}

FORMS = {
    "hf:": ("hf:ORG/NAME", "A model of the hub that has no card."),
    "path:": ("path:DIR", "A model in a folder."),
    "folds:": ("folds:DIR", "A folder with a model for each fold; each query is for the model that has not seen it."),
    "py:": ("py:MODULE:NAME", "A Python object of your own."),
    "vllm:": ("vllm:MODEL", "A reranker on a vLLM server of your own, at --base-url."),
    "vllm-score:": ("vllm-score:MODEL", "The same, by the server's /v1/score."),
    "tei:": ("tei:MODEL", "A reranker on a TEI server of your own, at --base-url."),
    "mteb:": ("mteb:ORG/NAME", "A model of MTEB's registry (extra mteb)."),
    "run:": ("run:FILE", "The documents of a run file."),
    "[": ("[SYSTEM]", "A whole system, as in [hyde(o3-mini) → bm25]+[bge → bge-reranker@100]."),
}
"""Forms of stages without a name of their own."""


def stage_pages(name: str) -> list[dict[str, Any]]:
    """Return what a stage does, how it is typed and what its settings mean, for each kind of stage of that name."""
    word = name.partition("(")[0].partition("@")[0].strip()  # as typed in a system
    pages = [_page(word, kind) for kind in PURPOSE if _is_stage(word, kind)]
    if not pages:
        known = [known for kind in PURPOSE for known in known_names(kind)]
        raise UserError(f"no stage {word!r}{nearest(word, known)}: r2med list stages shows all")
    return pages


def stage_section(page: Mapping[str, Any]) -> Section:
    """Return the help of a stage as a section of a page."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Paragraph, Section, Table

    typed = Paragraph(f"typed: {page['typed']}")
    aside = f"({page['kind']}): {page['summary']}"
    notes = [Paragraph(""), *map(Paragraph, page["notes"])] if page["notes"] else []
    if not page["settings"]:
        return Section(page["name"], [typed, "It has no settings.", *notes], aside=aside, aside_tone="")
    rows = [
        (s["name"], s["default"] or _NO_DEFAULT[s["required"]], s["values"], s["meaning"]) for s in page["settings"]
    ]
    columns = (Column("setting", no_wrap=True), Column("default"), Column("values"), Column("meaning"))
    return Section(page["name"], [typed, *notes, Paragraph(""), Table(columns, rows)], aside=aside, aside_tone="")


_NO_DEFAULT = {True: "(needed)", False: ""}


def stage_rows(kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield the stages of a kind, each with what it does."""
    for name in known_names(kind):
        yield name, stage_class(name, kind).summary(name)
    for prefix in BUILT_IN_STAGES[kind].prefixes:
        yield FORMS[prefix]


def _is_stage(name: str, kind: Kind) -> bool:
    try:
        stage_class(name, kind)
    except UserError:
        return False
    return True


def _page(name: str, kind: Kind) -> dict[str, Any]:
    from r2med.public.stage_settings import help_of_class

    declared = stage_class(name, kind)
    settings = list(help_of_class(declared, name))
    return {
        "name": name,
        "kind": kind,
        "summary": declared.summary(name),
        "typed": FORM[kind].format(stage=_typed(name, settings)),
        "settings": [asdict(setting) for setting in settings],
        "notes": list(declared.notes(name)),
    }


def _typed(name: str, settings: list[StageSetting]) -> str:
    """Return how a stage is typed, as in groupwise(LLM, SETTING=VALUE, …)@DEPTH."""
    arguments = [setting.name.upper() for setting in settings if setting.at == "argument"]
    if any(not setting.at for setting in settings):
        arguments.append("SETTING=VALUE, …")
    depth = "@DEPTH" if any(setting.at == "depth" for setting in settings) else ""
    return name + (f"({', '.join(arguments)})" if arguments else "") + depth
