"""The choices of each kind, as `r2med list` shows them: datasets, stages, suites, models, LLMs, prompts, …."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from r2med.foundation.core.errors import UserError, unknown
from r2med.public.listing import Listing


def listed(kind: str | None, folder: Path | None = None) -> Listing:
    """Return the choices of one kind, or the kinds. `folder` is that of overlays."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Paragraph, Table, table_page

    if kind == "overlays":
        return _overlays(folder or Path("overlays"))
    if folder is not None:
        raise UserError(f"only overlays are in a folder: leave out {folder}, or name the kind overlays")
    if kind and kind not in LISTS:
        raise unknown("kind of list", kind, MEANING, "r2med list shows all")
    if kind:
        return LISTS[kind]()
    note = Paragraph("r2med list KIND lists one kind, r2med show NAME shows one entry of it.", "quiet")
    table = Table((Column("kind", no_wrap=True), Column("what")), [list(row) for row in MEANING.items()])
    return Listing(table_page("Kinds of lists", table, notes=[note]), list(MEANING))


def _datasets() -> Listing:
    """Return every dataset and group by name."""
    from r2med.data.dataset_cards import cards, groups
    from r2med.foundation.pages.cells import Column, Value
    from r2med.foundation.pages.page import Page, Paragraph, Section, Table

    rows: list[list[Value]] = []
    for card in cards().values():
        counts = (card.counts.queries, card.counts.documents) if card.counts else (None, None)
        rows.append([card.name, card.task, card.scenario, *counts, card.licence])
    sizes = [Column(head, "integer", missing="") for head in ("#Q", "#D")]
    columns = (Column("dataset"), Column("task"), Column("scenario"), *sizes, Column("licence"))
    members = [Paragraph(f"group {group}: {', '.join(names)}") for group, names in groups().items()]
    page = Page("Datasets", [Section("", [Table(columns, rows)]), Section("", members)])
    datasets = [card.model_dump(mode="json", exclude_defaults=True) for card in cards().values()]
    return Listing(page, {"datasets": datasets, "groups": groups()})


def _stages() -> Listing:
    """Return every stage by its kind: expand, retrieve, rerank."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Page, Paragraph, Section, Table
    from r2med.public.stage_help import PURPOSE, stage_rows

    rows = {kind: list(stage_rows(kind)) for kind in PURPOSE}
    columns = (Column("name", no_wrap=True), Column("what it does"))
    sections = [
        Section(f"{kind}:", [Table(columns, rows[kind])], aside=aside, aside_tone="") for kind, aside in PURPOSE.items()
    ]
    sections.append(Section("", [Paragraph("r2med show NAME prints the settings of one.", "quiet")]))
    value = [{"name": name, "kind": kind, "summary": text} for kind in PURPOSE for name, text in rows[kind]]
    return Listing(Page("Stages", sections), value)


def _suites() -> Listing:
    """Return every suite, and every preset: one name for a whole system."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table, table_page
    from r2med.systems.system.presets import PRESETS
    from r2med.systems.system.suites import suite, suites

    read = [suite(name) for name in suites()]
    rows = [(each.name, ", ".join(each.data), len(each.calls), each.summary) for each in read]
    columns = (
        Column("suite", no_wrap=True),
        Column("datasets"),
        Column("systems", "integer"),
        Column("what it is for"),
    )
    presets = Table(
        (Column("preset", no_wrap=True), Column("what it does")),
        [(each.name, each.summary) for each in PRESETS.values()],
    )
    value = {
        "suites": [
            {"name": name, "data": each.data, "systems": each.specs, "summary": each.summary}
            for (name, *_), each in zip(rows, read, strict=True)
        ],
        "presets": [each.model_dump(mode="json") for each in PRESETS.values()],
    }
    return Listing(table_page("Suites", Table(columns, rows), presets), value)


def _models() -> Listing:
    """Return every embedding model and reranker that has a card."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table, table_page
    from r2med.models.crossencoders.reranker_cards import RERANKERS
    from r2med.models.encoders.model_cards import MODELS

    every = (*(("model", card) for card in MODELS.values()), *(("reranker", card) for card in RERANKERS.values()))
    value = [{"kind": kind, **card.model_dump(mode="json", exclude_defaults=True)} for kind, card in every]
    encoders = (
        (name, card.repository or card.query.repository, card.parameters, card.document.max_tokens, card.licence)
        for name, card in MODELS.items()
    )
    cross = (
        (name, card.repository, card.parameters, card.max_tokens or None, card.licence)
        for name, card in RERANKERS.items()
    )
    tables = []
    for kind, rows in (("model", encoders), ("reranker", cross)):
        names = (Column("name", no_wrap=True), Column(kind), Column("size", no_wrap=True))
        tables.append(Table((*names, Column("tokens", "integer", missing=""), Column("licence")), list(rows)))
    return Listing(table_page("Models", *tables), value)


def _llms() -> Listing:
    """Return every LLM that has a card; any other runs with --llm NAME --base-url URL."""
    from r2med.foundation.pages.cells import Column, Value
    from r2med.foundation.pages.page import Paragraph, Table, table_page
    from r2med.models.llm.llm_cards import LLMS

    rows: list[list[Value]] = []
    for card in LLMS.values():
        known = [f"{price:g}" if price else None for price in (card.price.prompt, card.price.completion)]
        rows.append([card.spec, card.backend, *known, card.model])
    prices = [Column(head, "dollars", missing="") for head in ("$/M in", "$/M out")]
    columns = (Column("name", no_wrap=True), Column("runs on", no_wrap=True), *prices, Column("model"))
    note = Paragraph("Dollars per million tokens; without a figure the price is not known.", "quiet")
    value = [card.model_dump(mode="json", exclude_defaults=True) for card in LLMS.values()]
    return Listing(table_page("LLMs", Table(columns, rows), notes=[note]), value)


def _prompts() -> Listing:
    """Return the prompt templates of each method, and the sets of templates that can replace them."""
    from r2med.foundation.pages.page import Paragraph, Table, table_page
    from r2med.models.prompts.templates import methods, named_templates, prompt_sets
    from r2med.public.named_things import fixed_templates

    fixed = list(fixed_templates())
    sets = {name: list(named_templates(name)) for name in sorted(prompt_sets())}
    tables = (
        Table.of(("built in", "kinds of task"), [(name, ", ".join(kinds)) for name, kinds in methods().items()]),
        Table.of(("set", "has"), [(name, ", ".join(templates)) for name, templates in sets.items()]),
        Table.of(("fixed", "asked by"), [(name, f"r2med {name.split('/')[0]}") for name in fixed]),
    )
    note = Paragraph("A set is a setting: 'hyde(o3-mini, prompts=short) → bm25'; a folder is one too.", "quiet")
    value = {"methods": methods(), "sets": sets, "fixed": fixed}
    return Listing(table_page("Prompt templates", *tables, notes=[note]), value)


def _rubrics() -> Listing:
    """Return every rubric: what is rated, by whom and in which words."""
    from r2med.assessment.rubrics.rubric import RUBRICS
    from r2med.foundation.pages.page import Table, table_page

    rows = [
        (
            rubric.name,
            rubric.task,
            "LLMs and people" if rubric.prompt else "people",
            ", ".join(point.name for point in rubric.points),
            ", ".join(rubric.by_word),
        )
        for rubric in RUBRICS.values()
    ]
    heads = ("rubric", "task", "rated by", "points", "words")
    value = [dict(zip(heads, row, strict=True)) for row in rows]
    return Listing(table_page("Rubrics", Table.of(heads, rows)), value)


def _analyses() -> Listing:
    """Return every analysis, and if it asks an LLM."""
    from r2med.analysis.analysis import ANALYSES
    from r2med.foundation.pages.page import Table, table_page

    rows = [(name, each.summary, "an LLM" if each.plan else "") for name, each in ANALYSES.items()]
    heads = ("analysis", "what it shows", "asks")
    value = [dict(zip(heads, row, strict=True)) for row in rows]
    return Listing(table_page("Analyses", Table.of(heads, rows)), value)


def _overlays(folder: Path) -> Listing:
    """Return every overlay in a folder, with its labels, judges and reviewers."""
    from r2med.assessment.judgements.overlay_files import overlay_paths, overlay_rows, overlays_page

    rows = list(overlay_rows(overlay_paths([folder])))
    return Listing(overlays_page(rows), rows)


LISTS: Mapping[str, Callable[[], Listing]] = {
    "datasets": _datasets,
    "stages": _stages,
    "suites": _suites,
    "models": _models,
    "llms": _llms,
    "prompts": _prompts,
    "rubrics": _rubrics,
    "analyses": _analyses,
}
MEANING = {
    "datasets": "benchmarks with a card, and groups of them (--data)",
    "stages": "what systems are made of: expansions, retrievers, rerankers; and the steps of a build",
    "suites": "lists of systems and datasets (run --suite), and presets, which name a whole system",
    "models": "embedding models and cross-encoders with a card",
    "llms": "LLMs with a card (--llm)",
    "prompts": "prompt templates and sets of them (--prompts)",
    "rubrics": "what LLMs and people are asked about a text (judge --rubric, review serve --kind)",
    "analyses": "what r2med analyse can look at",
    "overlays": "files of labels that r2med judge or people added (--overlay)",
}
