"""What a name means, as `r2med show` shows it: a stage, a suite, a card, prompts, a dataset, a pack or an overlay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2med.foundation.core.errors import UserError, nearest, unknown
from r2med.public.listing import Listing, listed_lines

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
    from r2med.foundation.core.names import known_names, raw_cards
    from r2med.public.stage_help import PURPOSE

    stages = [name for kind in PURPOSE for name in known_names(kind)]
    of_cards = [name for kind in ("models", "rerankers", "llms") for name in raw_cards(kind)]
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


def _prompts(name: str) -> Any:
    from r2med.models.prompts.templates import named_templates
    from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

    card = LLM_RERANKERS.get(name)
    name = card.template if card is not None else name
    templates = named_templates(name, fixed_templates())
    return {title: {"file": str(template.file), "text": template.text} for title, template in templates.items()}


def written_prompts(method: str, folder: Path) -> Listing:
    """Write the built-in templates of a method into a folder, and return them with how they are used."""
    from r2med.foundation.core.spec import encoded
    from r2med.models.prompts.templates import write_set

    template, stage, needs_llm = _user_of_prompts(method)
    written = write_set(template, folder)
    inside = f"{'LLM, ' if needs_llm else ''}prompts={encoded(str(folder))}"
    lines = [*map(str, written), f"Change what you like, delete the rest; then: {stage}({inside})"]
    value = {path.stem: {"file": str(path), "text": path.read_text(encoding="utf-8")} for path in written}
    return listed_lines(method, lines, value)


def _user_of_prompts(name: str) -> tuple[str, str, bool]:
    """Return a template, a stage that uses it, and True if that stage needs an LLM. Cards may share one template."""
    from r2med.systems.expand.method_cards import METHODS
    from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

    cards = [(each.template, each.name, each.llm is None) for each in LLM_RERANKERS.values()]
    cards += [(each.prompt, each.name, each.llm is None) for each in METHODS.values()]
    found = [card for card in cards if name == card[1]] or [card for card in cards if name == card[0]]
    return found[0] if found else (name, name, True)


def fixed_templates() -> dict[str, Traversable]:
    """Return the templates of `analyse` and `build` by name. They can be shown, but no set replaces them."""
    from r2med import analysis, construction
    from r2med.models.prompts.templates import templates_in

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
    """Return what a pack holds."""
    from r2med.publication.packs.unpacking import read_manifest

    if not Path(name).is_file() or Path(name).suffix == ".jsonl":
        raise UserError(f"{name} is not a pack")
    return read_manifest(Path(name)).model_dump(mode="json")


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
    from r2med.foundation.pages.page import Paragraph, Section, Table, Verbatim
    from r2med.public.stage_help import stage_section
    from r2med.publication.packs.pack_file import PackManifest, pack_page

    if kind == "stages":
        return [stage_section(page) for page in (value if isinstance(value, list) else [value])]
    if kind == "packs":
        return list(pack_page(PackManifest.model_validate(value), Path(name)).sections)
    if kind == "overlays":
        return list(overlays_page(value).sections)
    if kind == "prompts" and alone:
        return [Section("", [Verbatim(f"{title} ({each['file']})", each["text"])]) for title, each in value.items()]
    if kind == "prompts":
        more = f"(r2med show --kind prompts {name} prints them)"
        return [Section("", [Paragraph(f"prompts: {', '.join(value)} {more}", no_wrap=True)])]
    sections = []
    if fields := {key: field for key, field in value.items() if key != "sizes"}:
        table = Table.of(("field", "value"), [(key, _shown(field)) for key, field in fields.items()])
        sections.append(Section("" if alone else f"{CARDS[kind]}:", [table]))
    return [*sections, *(_sizes(name, value["sizes"]) if "sizes" in value else ())]


def _sizes(name: str, sizes: list[dict[str, Any]]) -> Iterator[Section]:
    from r2med.data.stats import Stats
    from r2med.foundation.pages.page import Paragraph, Section

    if sizes:
        yield Section("", [_sizes_table([Stats(**each) for each in sizes])])
    else:
        advice = f"Its sizes are shown when it is on this machine: r2med data fetch {name}"
        yield Section("", [Paragraph(advice, "quiet")])


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
