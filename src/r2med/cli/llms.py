"""`r2med llms`: which LLMs have a card, and what it says."""

from __future__ import annotations

from typing import Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format
from r2med.cli.formats import show as show_page

llms = typer.Typer(help="List and show LLMs.", no_args_is_help=True)


@llms.command("list")
def list_(form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Show every LLM that has a card; any other runs with --llm NAME --base-url URL."""
    from r2med.llm.llm_cards import LLMS
    from r2med.pages.cells import Column, Value
    from r2med.pages.page import Note, Table, table_page

    rows: list[list[Value]] = []
    for card in LLMS.values():
        known = [f"{price:g}" if price else None for price in (card.price.prompt, card.price.completion)]
        rows.append([card.name, card.backend, *known, card.model])
    prices = [Column(head, "dollars", missing="") for head in ("$/M in", "$/M out")]
    columns = (Column("name", whole=True), Column("runs on", whole=True), *prices, Column("model"))
    note = Note("Dollars per million tokens; without a figure the price is not known.", "quiet")
    value = [card.model_dump(mode="json", exclude_defaults=True) for card in LLMS.values()]
    show_page(table_page("LLMs", Table(columns, rows), notes=[note]), form, as_json, value)


@llms.command()
def show(name: Annotated[str, typer.Argument(help="A name of the list.", autocompletion=completion.llms)]) -> None:
    """Print how an LLM is asked: all that its card says, and the defaults of what it does not."""
    from r2med.cli.console import print_json
    from r2med.llm.llm_cards import LLMS, Price, sampling_of

    card = LLMS.card(name)
    sent = vars(sampling_of(card))  # a reasoning API is sent less than the card's fields
    fields = {key: sent.get(key, value) for key, value in card.model_dump().items() if value != Price().model_dump()}
    print_json({key: value for key, value in fields.items() if value not in (None, "", ())})
