"""`r2med show`: show the stage, card or prompt templates of a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError, nearest, unknown

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Section


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="A name of r2med list, such as hyde, bge, o3-mini, hyde.exam or MedQA-Diag; also hf:ORG/NAME.",
            autocompletion=completion.anything,
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Show only this kind: stages, models, llms, prompts, datasets or rubrics.",
            show_default=False,
            autocompletion=completion.kinds,
        ),
    ] = "",
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Show what a name means: the settings of a stage, the card of a model, LLM or dataset, or prompt templates."""
    from r2med.foundation.pages.page import Page

    found = _found(name, kind)
    alone = len(found) == 1
    sections = [section for each, value in found.items() for section in _sections(each, name, value, alone, form)]
    show_page(Page(name, sections), form, as_json, found[kind] if kind else found)


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
        raise UserError(
            f"nothing is named {name!r}{nearest(name, completion.anything(''))}: r2med list shows all kinds"
        )
    return found


def _stage(name: str) -> Any:
    from r2med.cli.stage_help import stage_pages

    pages = stage_pages(name)
    return pages[0] if len(pages) == 1 else pages


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
    from r2med.cli.prompts_command import fixed_templates
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
        shown[f"{name} of its authors"] = {"file": f"{where}{share}", "text": found.turns if found else ""}
    return shown


def _dataset(name: str) -> Any:
    from r2med.data.dataset_cards import cards

    known = cards()
    if name not in known:
        raise unknown("dataset", name, known, "r2med list datasets shows all")
    return known[name].model_dump(mode="json", exclude_defaults=True)


def _rubric(name: str) -> Any:
    from r2med.assessment.rubrics.rubric import RUBRICS

    return RUBRICS.card(name).model_dump(mode="json", exclude_defaults=True)


_FINDERS: Mapping[str, Callable[[str], Any]] = {
    "stages": _stage,
    "models": _model,
    "llms": _llm,
    "prompts": _prompts,
    "datasets": _dataset,
    "rubrics": _rubric,
}


def _sections(kind: str, name: str, value: Any, alone: bool, form: str) -> list[Section]:
    """Return what a name means in one kind, as sections of a page."""
    from r2med.cli.stage_help import stage_section
    from r2med.foundation.pages.page import Note, Section, Table, Verbatim

    if kind == "stages":
        return [stage_section(page) for page in (value if isinstance(value, list) else [value])]
    if kind == "prompts" and form == "csv":
        return [Section("", [Table.of(PROMPT_HEADS, [(title, *each.values()) for title, each in value.items()])])]
    if kind == "prompts" and alone:
        return [Section("", [Verbatim(f"{title} ({each['file']})", each["text"])]) for title, each in value.items()]
    if kind == "prompts":
        more = f"(r2med show --kind prompts {name} prints them)"
        return [Section("", [Note(f"prompts: {', '.join(value)} {more}", whole=True)])]
    fields = Table.of(("field", "value"), [(key, _shown(field)) for key, field in value.items()])
    return [Section("" if alone else f"{CARDS[kind]}:", [fields])]


PROMPT_HEADS = ("prompt", "file", "text")
CARDS = {
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
