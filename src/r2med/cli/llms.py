"""`r2med llms`: which LLMs have a card, and what it says."""

from __future__ import annotations

from typing import Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

llms = typer.Typer(help="List and show LLMs.", no_args_is_help=True)


@llms.command("list")
def list_(as_json: flags.AsJSON = False) -> None:
    """Show every LLM that has a card; any other runs with --llm NAME --base-url URL."""
    from r2med.cli.console import console, plain, print_json, table
    from r2med.llm.llm_cards import LLMS

    if as_json:
        print_json([card.model_dump(mode="json", exclude_defaults=True) for card in LLMS.values()])
        return
    rows = []
    for card in LLMS.values():
        prices = [f"{price:g}" if price else "" for price in (card.price.prompt, card.price.completion)]
        rows.append((card.name, card.backend, *prices, card.model))
    heads = ("name", "runs on", "$/M in", "$/M out", "model")
    output = console()
    output.print(table(heads, rows, numbers=("$/M in", "$/M out"), whole=("name", "runs on")))
    output.print(plain("Dollars per million tokens; without a figure the price is not known.", "dim"))


@llms.command()
def show(name: Annotated[str, typer.Argument(help="A name of the list.", autocompletion=completion.llms)]) -> None:
    """Print how an LLM is asked: all that its card says, and the defaults of what it does not."""
    from r2med.cli.console import print_json
    from r2med.llm.llm_cards import LLMS, Price, sampling_of

    card = LLMS.card(name)
    sent = vars(sampling_of(card))  # a reasoning API is sent less than the card's fields
    fields = {key: sent.get(key, value) for key, value in card.model_dump().items() if value != Price().model_dump()}
    print_json({key: value for key, value in fields.items() if value not in (None, "", ())})
