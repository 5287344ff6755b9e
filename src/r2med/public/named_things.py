"""What a name means, as `r2med show` shows it: a stage, a suite, a card, prompts, a dataset, a pack or an overlay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2med.foundation.core.errors import UserError, nearest, unknown
from r2med.public.listing import Listing

if TYPE_CHECKING:
    from r2med.data.stats import Stats
    from r2med.foundation.pages.page import Section, Table


def shown(name: str, kind: str | None = None) -> Listing:
    """Return what a name means, or what it means in one kind."""
    from r2med.foundation.pages.page import Page

    found = _found(name, kind or "")
    alone = len(found) == 1
    sections = [section for each, value in found.items() for section in _sections(each, name, value, alone)]
    return Listing(Page(name, sections), found[kind] if kind else found)


def _found(name: str, kind: str) -> dict[str, Any]:
    """Return what a name means, by kind. Raises UserError if it means nothing."""
    if kind:
        if kind not in _FINDERS:
            raise unknown("kind of name", kind, _FINDERS)
        return {kind: _FINDERS[kind](name)}
    found = {}
    for each, find in _FINDERS.items():
        try:
            found[each] = find(name)
        except UserError:
            continue  # it has no meaning of this kind
    if not found:
        raise UserError(f"nothing is named {name!r}{nearest(name, _every_name())}: r2med list shows all kinds")
    return found


def _every_name() -> list[str]:
    """Return the stages, models, LLMs and datasets."""
    from r2med.data.dataset_cards import cards
    from r2med.foundation.core import plugins
    from r2med.public.stage_help import PURPOSE, stage_names

    stages = [name for kind in PURPOSE for name in stage_names(kind)]
    of_cards = [name for kind in ("models", "rerankers", "llms") for name in plugins.files(kind, ".toml")]
    return [*stages, *of_cards, *cards()]


def _stage(name: str) -> Any:
    from r2med.public.stage_help import stage_pages

    pages = stage_pages(name)
    return pages[0] if len(pages) == 1 else pages


def _suite(name: str) -> Any:
    """Return the systems and datasets of a suite, or the spec and the parts of a preset."""
    from r2med.systems.system.presets import PRESETS
    from r2med.systems.system.suites import suite

    if name in PRESETS:
        return PRESETS.card(name).model_dump(mode="json")
    found = suite(name)
    fields = found.model_dump(mode="json", exclude_defaults=True, exclude={"grid"})
    return {**fields, "data": list(found.data), "systems": found.specs}


def _model(name: str) -> Any:
    from r2med.models.crossencoders.reranker_cards import RERANKERS, is_served, resolve_reranker
    from r2med.models.encoders.model_cards import resolve_card
    from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

    served = resolve_reranker(name) if is_served(name) else None
    card = served or RERANKERS.get(name) or LLM_RERANKERS.get(name) or resolve_card(name)
    return card.model_dump(mode="json", exclude_defaults=True)


def _llm(name: str) -> Any:
    """Return how an LLM is asked: all that its card says, and the defaults of what it does not."""
    from r2med.models.llm.llm_cards import LLMS, Price, sampling_of

    card = LLMS.card(name)
    sent = vars(sampling_of(card))  # a reasoning API is sent less than the card's fields
    fields = {key: sent.get(key, value) for key, value in card.model_dump().items() if value != Price().model_dump()}
    return {key: value for key, value in fields.items() if value not in (None, "", ())}


OF_AUTHORS = " of its authors"
"""Ends the title of a prompt that the authors of a reranker wrote."""


def _prompts(name: str) -> Any:
    from r2med.models.prompts.prompt_sets import named_templates
    from r2med.systems.rerank.authors_prompts import AUTHORS_PROMPTS, equal_words, find_authors
    from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

    card = LLM_RERANKERS.get(name)
    name = card.template if card is not None else name
    templates = named_templates(name, fixed_templates())
    shown = {title: {"file": str(template.file), "text": template.text} for title, template in templates.items()}
    if name in AUTHORS_PROMPTS and name in templates:
        found = find_authors(name)
        where = found.statement if found else f"not on this machine: r2med prompts fetch {name}"
        share = f"; ours has {equal_words(templates[name].text, found.turns):.0%} of its words" if found else ""
        shown[f"{name}{OF_AUTHORS}"] = {"file": f"{where}{share}", "text": found.turns if found else ""}
    return shown


def fixed_templates() -> dict[str, Traversable]:
    """Return the templates of `analyse` and `build` by name. They can be shown, but no set replaces them."""
    from r2med import analysis, construction
    from r2med.models.prompts.prompt_sets import templates_in

    floors = {"analyse": analysis, "build": construction}
    found = (templates_in(files(floor) / "prompts", command) for command, floor in floors.items())
    return {name: file for templates in found for name, file in templates.items()}


def _dataset(name: str) -> Any:
    """Return the card of a dataset, and the sizes of those datasets of a name, group or folder that are here."""
    from dataclasses import asdict

    from r2med.data import names
    from r2med.data.dataset_cards import cards, groups
    from r2med.data.hub import is_fetched
    from r2med.data.loading import load_dataset
    from r2med.data.stats import stats
    from r2med.foundation.store import default_store

    known, store = cards(), default_store()
    members = {member for group in groups().values() for member in group}
    if name not in {*known, *groups(), *members} and not Path(name).is_dir():
        raise unknown("dataset", name, [*known, *groups()], "r2med list datasets shows all")
    every = names(name)
    hubs = {each: known[each].hub for each in every if each in known and not known[each].folder}
    here = [each for each in every if (hub := hubs.get(each)) is None or is_fetched(hub, store)]
    fields = known[name].model_dump(mode="json", exclude_defaults=True) if name in known else {}
    return {**fields, "sizes": [asdict(stats(load_dataset(each, store))) for each in here]}


def _pack(name: str) -> Any:
    """Return what a pack holds and saves."""
    from r2med.publication.packs.unpacking import pack_commands
    from r2med.publication.packs.verified_pack import listed_pack

    if not Path(name).is_file() or Path(name).suffix == ".jsonl":
        raise UserError(f"{name} is not a pack")
    with listed_pack(Path(name)) as opened:
        commands = list(pack_commands(opened, Path("results")))
        return {**opened.manifest.model_dump(mode="json"), "commands": commands}


def _overlay(name: str) -> Any:
    """Return the labels, judges and reviewers of an overlay."""
    from r2med.assessment.judgements.overlay_files import overlay_rows

    if not Path(name).is_file():
        raise UserError(f"{name} is not an overlay")
    return list(overlay_rows([Path(name)]))


def _rubric(name: str) -> Any:
    from r2med.assessment.rubrics.rubric import RUBRICS

    return RUBRICS.card(name).model_dump(mode="json", exclude_defaults=True)


_FINDERS: Mapping[str, Callable[[str], Any]] = {
    "stages": _stage,
    "suites": _suite,
    "models": _model,
    "llms": _llm,
    "prompts": _prompts,
    "datasets": _dataset,
    "rubrics": _rubric,
    "packs": _pack,
    "overlays": _overlay,
}
KINDS = tuple(_FINDERS)
"""The kinds of things that have names."""


def _sections(kind: str, name: str, value: Any, alone: bool) -> list[Section]:
    """Return what a name means in one kind, as sections of a page."""
    from r2med.assessment.judgements.overlay_files import overlays_page
    from r2med.foundation.pages.page import Note, Section, Table
    from r2med.public.stage_help import stage_section
    from r2med.publication.packs.pack_manifest import PackManifest
    from r2med.publication.packs.pack_page import pack_page

    if kind == "stages":
        return [stage_section(page) for page in (value if isinstance(value, list) else [value])]
    if kind == "packs":
        manifest = PackManifest.model_validate({key: each for key, each in value.items() if key != "commands"})
        return list(pack_page(manifest, Path(name), value["commands"]).sections)
    if kind == "overlays":
        return list(overlays_page(value).sections)
    if kind == "prompts" and alone:
        return _prompt_sections(value)
    if kind == "prompts":
        more = f"(r2med show --kind prompts {name} prints them)"
        return [Section("", [Note(f"prompts: {', '.join(value)} {more}", whole=True)])]
    sections = []
    if fields := {key: field for key, field in value.items() if key != "sizes"}:
        table = Table.of(("field", "value"), [(key, _shown(field)) for key, field in fields.items()])
        sections.append(Section("" if alone else f"{CARDS[kind]}:", [table]))
    return [*sections, *(_sizes(name, value["sizes"]) if "sizes" in value else ())]


def _prompt_sections(prompts: Mapping[str, Mapping[str, str]]) -> list[Section]:
    """Return the texts of prompts; ours and that of its authors side by side, if both are here."""
    from r2med.foundation.pages.page import Note, Section, Verbatim

    sections = []
    for title, each in prompts.items():
        head, theirs = f"{title} ({each['file']})", prompts.get(f"{title}{OF_AUTHORS}")
        if theirs and theirs["text"]:
            authors = Note(f"{title}{OF_AUTHORS} ({theirs['file']})", whole=True)
            sections.append(Section("", [Note(head, whole=True), authors, _beside(each["text"], theirs["text"])]))
        elif not (each["text"] and title.endswith(OF_AUTHORS)):
            sections.append(Section("", [Verbatim(head, each["text"])]))
    return sections


def _beside(ours: str, theirs: str) -> Table:
    """Return a table with the lines of two texts side by side, equal lines in one row."""
    from difflib import SequenceMatcher
    from itertools import zip_longest

    from r2med.foundation.pages.page import Table

    left, right = ours.splitlines(), theirs.splitlines()
    parts = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    rows = [row for _, a, b, c, d in parts for row in zip_longest(left[a:b], right[c:d], fillvalue="")]
    return Table.of(("ours", "authors'"), rows)


def _sizes(name: str, sizes: list[dict[str, Any]]) -> Iterator[Section]:
    from r2med.data.stats import Stats
    from r2med.foundation.pages.page import Note, Section

    if sizes:
        yield Section("", [_sizes_table([Stats(**each) for each in sizes])])
    else:
        yield Section("", [Note(f"Its sizes are shown when it is on this machine: r2med data fetch {name}", "quiet")])


def _sizes_table(sizes: list[Stats]) -> Table:
    """Return the sizes of datasets. Lengths are means, in words and characters."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    rows = [
        (
            size.name,
            size.queries,
            size.documents,
            size.mean_positives,
            size.query_words,
            size.document_words,
            size.document_characters,
            size.longest_document,
        )
        for size in sizes
    ]
    columns = (
        Column("Dataset"),
        Column("#Q", "integer"),
        Column("#D", "integer"),
        Column("Avg. Pos", "number"),
        Column("Q-Len", "number", 1),
        Column("D-Len", "number", 1),
        Column("D-Chars", "integer"),
        Column("D-Max", "integer"),
    )
    note = "Q-Len and D-Len: mean words. D-Chars, D-Max: mean and most characters."
    return Table(columns, rows, note=note)


CARDS = {
    "suites": "suite or preset",
    "models": "card of the model",
    "llms": "card of the LLM",
    "datasets": "card of the dataset",
    "rubrics": "rubric",
}


def _shown(field: Any) -> str:
    """Return a field of a card as text: parts of tables and lists with commas between them, sentences with blanks."""
    if isinstance(field, Mapping):
        return ", ".join(f"{key} = {_shown(value)}" for key, value in field.items())
    if isinstance(field, list | tuple):
        parts = list(map(_shown, field))
        return (" " if all(part.endswith(".") for part in parts) else ", ").join(parts)
    return str(field)
