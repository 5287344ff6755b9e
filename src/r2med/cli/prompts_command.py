"""`r2med prompts`: start a set of prompt templates of one's own, and fetch the prompts of rerankers' authors."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli.generated import generated
from r2med.foundation.core.spec import encoded
from r2med.foundation.text.terminal_text import printable
from r2med.public.prompt_functions import fetch_prompts

if TYPE_CHECKING:
    from r2med.systems.rerank.authors_prompts import FoundPrompt

prompts = typer.Typer(
    help="Start a set of prompt templates of your own, or fetch the prompt of a reranker's authors.",
    no_args_is_help=True,
)


def show_fetched(found: FoundPrompt, reranker: str) -> None:
    """Print where a prompt is from, what of it is not converted, and how to compare it with ours."""
    print(printable(found.statement))
    for remark in found.authors.unconverted:
        print(printable(f"Not converted: {remark}"))
    print(printable(f"Used by prompts=authors. Beside ours: r2med show --kind prompts {reranker}"))


prompts.command("fetch")(generated(fetch_prompts, show_fetched))


@prompts.command()
def new(
    method: Annotated[str, typer.Argument(help="The method that uses the prompts: hyde, listwise, search-r1, ….")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the set.", show_default=False)],
) -> None:
    """Write the built-in templates of a method into a folder, where you can change them."""
    from r2med.models.prompts.prompt_sets import write_set

    template, user, needs_llm = _used_by(method)
    for path in write_set(template, out):
        print(printable(str(path)))
    inside = f"{'LLM, ' if needs_llm else ''}prompts={encoded(str(out))}"
    print(printable(f"Change what you like, delete the rest; then: {user}({inside})"))


def _used_by(name: str) -> tuple[str, str, bool]:
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
    from r2med.models.prompts.prompt_sets import templates_in

    floors = {"analyse": analysis, "build": construction}
    found = (templates_in(files(floor) / "prompts", command) for command, floor in floors.items())
    return {name: file for templates in found for name, file in templates.items()}
