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
    from rich.table import Table

    from r2med.models.llm_cards import llms as cards

    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for head in ("name", "model", "runs on", "answer", "$/M in", "$/M out"):
        table.add_column(head, no_wrap=head == "name", overflow="fold")
    for card in cards().values():
        prices = [f"{price:g}" if price else "" for price in (card.price.prompt, card.price.completion)]
        table.add_row(card.name, card.model, card.backend, card.answer, *prices)
    Console().print(table)


@llms.command()
def show(name: Annotated[str, typer.Argument(help="A name of the list.")]) -> None:
    """Print all that an LLM's card says."""
    import json

    from r2med.models.llm_cards import llm_card

    print(json.dumps(llm_card(name).model_dump(exclude_defaults=True), indent=1, ensure_ascii=False))
