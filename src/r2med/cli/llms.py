"""`r2med llms`: which LLMs have a card, and what it says."""

from __future__ import annotations

from typing import Annotated

import typer

llms = typer.Typer(help="List and show LLMs.", no_args_is_help=True)


@llms.command("list")
def list_() -> None:
    """Show every LLM that has a card; any other runs with --llm NAME --base-url URL."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    from r2med.llm.llm_cards import llms as cards

    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for head in ("name", "model", "runs on", "answer", "$/M in", "$/M out"):
        table.add_column(head, no_wrap=True)
    for card in cards().values():
        prices = [f"{price:g}" if price else "" for price in (card.price.prompt, card.price.completion)]
        table.add_row(card.name, card.model, card.backend, card.answer, *prices)
    # As wide as it is: a name in two halves can be neither copied nor searched for.
    console = Console()
    needed = Measurement.get(console, console.options.update(max_width=1000), table).maximum
    Console(width=max(console.width, needed)).print(table)


@llms.command()
def show(name: Annotated[str, typer.Argument(help="A name of the list.")]) -> None:
    """Print how an LLM is asked: all that its card says, and the defaults of what it does not."""
    import json

    from r2med.llm.llm_cards import Price, llm_card
    from r2med.llm.open import sampling_of

    card = llm_card(name)
    sent = vars(sampling_of(card))  # a reasoning API is sent less than the card's fields
    said = {key: sent.get(key, value) for key, value in card.model_dump().items() if value != Price().model_dump()}
    print(
        json.dumps(
            {key: value for key, value in said.items() if value not in (None, "", ())}, indent=1, ensure_ascii=False
        )
    )
