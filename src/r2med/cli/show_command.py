"""`r2med show`: all that is known about a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format


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
            help="Show only what is of this kind: stages, models, llms, prompts or datasets.",
            show_default=False,
            autocompletion=completion.kinds,
        ),
    ] = "",
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Show what a name means: the settings of a stage, the card of a model, LLM or dataset, or prompt templates."""
    from r2med.cli.console import console, print_json

    found = _found(name, kind)
    if as_json or form == "json":
        print_json(found[kind] if kind else found)
        return
    alone = len(found) == 1
    for number, (each, value) in enumerate(found.items()):
        if number:
            console().print()
        _print(each, name, value, alone, form)


def _found(name: str, kind: str) -> dict[str, Any]:
    """Return what a name means, by kind. Raises UserError if it means nothing."""
    from r2med.core.errors import UserError, nearest, unknown

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
    from r2med.crossencoders.reranker_cards import RERANKERS
    from r2med.encoders.model_cards import resolve_card

    card = RERANKERS[name] if name in RERANKERS else resolve_card(name)
    return card.model_dump(mode="json", exclude_defaults=True)


def _llm(name: str) -> Any:
    """Return how an LLM is asked: all that its card says, and the defaults of what it does not."""
    from r2med.llm.llm_cards import LLMS, Price, sampling_of

    card = LLMS.card(name)
    sent = vars(sampling_of(card))  # a reasoning API is sent less than the card's fields
    fields = {key: sent.get(key, value) for key, value in card.model_dump().items() if value != Price().model_dump()}
    return {key: value for key, value in fields.items() if value not in (None, "", ())}


def _prompts(name: str) -> Any:
    from r2med.prompts.prompt_sets import named_templates

    templates = named_templates(name)
    return {title: {"file": str(template.file), "text": template.text} for title, template in templates.items()}


def _dataset(name: str) -> Any:
    from r2med.core.errors import unknown
    from r2med.data.dataset_cards import cards

    known = cards()
    if name not in known:
        raise unknown("dataset", name, known, "r2med list datasets shows all")
    return known[name].model_dump(mode="json", exclude_defaults=True)


_FINDERS: Mapping[str, Callable[[str], Any]] = {
    "stages": _stage,
    "models": _model,
    "llms": _llm,
    "prompts": _prompts,
    "datasets": _dataset,
}


def _print(kind: str, name: str, value: Any, alone: bool, form: str) -> None:
    from r2med.cli.console import console, plain, print_json
    from r2med.cli.formats import show as show_page
    from r2med.cli.stage_help import stage_section
    from r2med.pages.page import Page

    if kind == "stages":
        show_page(Page(name, [stage_section(page) for page in (value if isinstance(value, list) else [value])]), form)
    elif kind == "prompts" and alone:
        _print_templates(value)
    elif kind == "prompts":
        titles = ", ".join(value)
        console().print(plain(f"prompts: {titles} (r2med show --kind prompts {name} prints them)"), soft_wrap=True)
    else:
        if not alone:
            print(f"{CARD[kind]}:")
        print_json(value)


CARD = {"models": "card of the model", "llms": "card of the LLM", "datasets": "card of the dataset"}


def _print_templates(templates: Mapping[str, Mapping[str, str]]) -> None:
    """Print templates, each with the file it is in."""
    from r2med.cli.console import console, plain

    output = console()
    for title, template in templates.items():
        output.print(plain(title, "bold"), plain(f"({template['file']})", "dim"), soft_wrap=True)
        for line in template["text"].split("\n"):
            output.print(plain(line), soft_wrap=True)
        output.print()
