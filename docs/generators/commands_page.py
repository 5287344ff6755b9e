"""docs/commands.md: every command with its arguments and options, from the declarations of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from generators.markdown import NOTICE, code, prose, table
from r2med.cli.app import PANELS, command

HEAD = """# Commands

`r2med COMMAND --help` shows the same in a terminal. An option that may be repeated is marked with `…`.
[Exit codes](environment.md#exit-codes) are the same everywhere.
"""

FORMATS = """
## Formats of tables

These commands take `--format text`, `markdown`, `latex`, `csv`, `json` or `html`: COMMANDS.

- `csv` has all digits of numbers. An estimate takes three columns: its value, its low and its high bound. A text that a
  spreadsheet would run as a formula gets an apostrophe in front. Tables are separated by an empty line.
- `latex` has the tables without the sentences around them, and needs the package `booktabs`. Names are escaped.
- `html` is one file without scripts, in the board's look: `r2med show demo --format html > sizes.html`.
- `compare` prints its table of pairs in `markdown`, `latex` and `csv`, and its sentences in `text` and `html`.
"""


def page() -> str:
    """Return the page."""
    whole: Any = command()
    parts = [HEAD, "\n", _overview(whole)]
    for panel, commands in PANELS.items():
        parts.append(f"\n## {panel}\n")
        for name in commands:
            parts += _entries(whole.commands[name], ["r2med", name])
    return "".join([*parts, FORMATS.replace("COMMANDS", ", ".join(_with_formats(whole))), NOTICE])


def _with_formats(whole: Any) -> Iterator[str]:
    for path, each in _leaves(whole, []):
        if any("--format" in one.opts and "markdown" in (one.help or "") for one in each.params):
            yield code(" ".join(path))


def _overview(whole: Any) -> str:
    rows = []
    for panel, commands in PANELS.items():
        rows.append((f"**[{panel}](#{panel.lower().replace(' ', '-')})**", ""))
        for name in commands:
            for path, each in _leaves(whole.commands[name], ["r2med", name]):
                words = " ".join(path)
                rows.append((f"[`{words}`](#{'-'.join(path)})", _first_sentence(each.help or "")))
    return table(("command", "what it does"), rows)


def _leaves(each: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    if hasattr(each, "commands"):
        for name, inner in each.commands.items():
            yield from _leaves(inner, [*path, name])
    elif not each.hidden:
        yield path, each


def _entries(each: Any, path: list[str]) -> Iterator[str]:
    for words, leaf in _leaves(each, path):
        arguments = [one for one in leaf.params if one.param_type_name == "argument"]
        options = [one for one in leaf.params if one.param_type_name == "option" and one.name != "help"]
        usual, rare = ([one for one in options if one.hidden is hidden] for hidden in (False, True))
        usage = " ".join([*words, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)])
        yield f"\n### `{' '.join(words)}`\n\n{_paragraphs(leaf.help or '')}\n\n```text\n{usage}\n```\n"
        if arguments:
            rows = [(code(_placeholder(one)), one.help or "") for one in arguments]
            yield "\n" + table(("argument", "meaning"), rows)
        if usual:
            yield "\n" + table(("option", "default", "meaning"), map(_option_row, usual))
        if rare:
            yield "\n" + table(("shown by `--help-all`", "default", "meaning"), map(_option_row, rare))


def _option_row(option: Any) -> Sequence[str]:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {code(_placeholder(option))}"
    return names + value + (" …" if option.multiple else ""), _default(option), option.help or ""


def _default(option: Any) -> str:
    default = option.default
    if default in (None, "", (), [], False) and not (default == 0 and default is not False):
        return "needed" if option.required else ""
    return code(default.as_posix() if isinstance(default, Path) else default)


def _argument(one: Any) -> str:
    word = _placeholder(one) + ("…" if one.nargs == -1 else "")
    return word if one.required else f"[{word}]"


def _placeholder(one: Any) -> str:
    """Return what the help shows in the place of a value."""
    if one.metavar:
        return str(one.metavar).strip("[]")
    if isinstance(one.default, bool) or not isinstance(one.default, int | float | Path):
        return str(one.name).upper()
    return "PATH" if isinstance(one.default, Path) else "NUMBER"


def _paragraphs(text: str) -> str:
    return prose("\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n")))


def _first_sentence(text: str) -> str:
    return _paragraphs(text).partition("\n")[0].partition(". ")[0].rstrip(".")
