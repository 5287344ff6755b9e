"""`r2med prompts`: which templates there are, what they say, and a set of one's own to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format
from r2med.cli.formats import show as show_page

prompts = typer.Typer(help="List and show prompt templates, and begin a set of your own.", no_args_is_help=True)


@prompts.command("list")
def list_(form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Show what there are templates for, and the sets that stand in for them."""
    from r2med.pages.page import Note, Table, table_page
    from r2med.prompts.prompt_sets import fixed_templates, methods, named_templates, prompt_sets

    sets = {name: list(named_templates(name)) for name in sorted(prompt_sets())}
    tables = (
        Table.of(("built in", "kinds of task"), [(name, ", ".join(kinds)) for name, kinds in methods().items()]),
        Table.of(("set", "has"), [(name, ", ".join(templates)) for name, templates in sets.items()]),
        Table.of(("fixed", "asked by"), [(name, f"r2med {name.split('/')[0]}") for name in fixed_templates()]),
    )
    note = Note("A set is a setting: 'hyde(o3-mini, prompts=short) → bm25'; a folder is one too.", "quiet")
    value = {"methods": methods(), "sets": sets, "fixed": list(fixed_templates())}
    show_page(table_page("Prompt templates", *tables, notes=[note]), form, as_json, value)


@prompts.command()
def show(
    name: Annotated[str, typer.Argument(help="A template (hyde.exam), a method (hyde), a set or its folder.")],
) -> None:
    """Print templates, each with the file it is in."""
    from r2med.cli.console import console, plain
    from r2med.prompts.prompt_sets import named_templates

    output = console()
    for title, template in named_templates(name).items():
        output.print(plain(title, "bold"), plain(f"({template.file})", "dim"), soft_wrap=True)
        for line in template.text.split("\n"):
            output.print(plain(line), soft_wrap=True)
        output.print()


@prompts.command()
def new(
    method: Annotated[str, typer.Argument(help="What the prompts are for: hyde, listwise, search-r1, …")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the set.", show_default=False)],
) -> None:
    """Write the built-in templates of a method into a folder, to be changed there."""
    from r2med.core.spec import encoded
    from r2med.prompts.prompt_sets import write_set
    from r2med.text.terminal_text import printable

    for path in write_set(method, out):
        print(printable(str(path)))
    print(printable(f"Change what you like, delete the rest; then: {method}(LLM, prompts={encoded(str(out))})"))
