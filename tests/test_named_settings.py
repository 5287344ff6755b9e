"""Messages name a setting as Python and the command line know it: `device (--device cpu)`. Every such flag exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import r2med as package
from r2med.cli.app import command

SOURCE = Path(package.__file__).parent


@cache
def _sources() -> dict[Path, list[ast.AST]]:
    """Return the nodes of each file of the package that calls and texts are made of."""
    kinds = (ast.Call, ast.JoinedStr, ast.Constant, ast.Expr)
    parsed = {
        file.relative_to(SOURCE): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))
    }
    return {file: [node for node in ast.walk(tree) if isinstance(node, kinds)] for file, tree in parsed.items()}


def _flags(words: str) -> set[str]:
    """Return the flags of a command."""
    found = command()
    for word in words.split():
        found = found.commands[word]
    return {flag for each in found.params for flag in (*each.opts, *each.secondary_opts)}


@cache
def _every_flag() -> set[str]:
    commands, flags = [command()], set()
    while commands:
        each = commands.pop()
        commands += getattr(each, "commands", {}).values()
        flags |= {flag for parameter in each.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    return flags


NAMED = re.compile(r"\w \((--[a-z][a-z-]*)")


def test_every_flag_that_a_text_names_beside_its_setting_exists():
    named = {
        f"{file}: {flag}": flag
        for file, nodes in _sources().items()
        for text in _texts(nodes)
        for flag in NAMED.findall(text)
    }
    assert len(named) > 50
    assert not [place for place, flag in named.items() if flag not in _every_flag()]


CALL = re.compile(
    r"(?<![\w.])(?:Setup|" + "|".join(n for n in package.__all__ if n.islower()) + r")\(\w+=(?!yes|no)"
)  # judge(untested=yes) is a step of a build
WHOLE_CALL = re.compile(r"\br2med\.\w+\([^)]|\(\w+=(?:True|False|\.\.\.)\)")
FLAG = re.compile(r"(?<![\w(-])--[a-z]")
"""A flag in a text. `data (--data)` names a setting once, as Python and the command line know it."""
PROGRAMS = re.compile(r"\b(r2med|ray|pip) [a-z]")
"""A whole command line is the same for everybody."""


def _texts(nodes: list[ast.AST]) -> list[str]:
    """Return the strings of a file, without docstrings and without lone flags, which commands are made of."""
    formatted = [node.values for node in nodes if isinstance(node, ast.JoinedStr)]
    skipped = {id(part) for parts in formatted for part in parts}
    skipped |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    whole = [[node] for node in nodes if isinstance(node, ast.Constant) and id(node) not in skipped]
    texts = ["".join(str(getattr(part, "value", "")) for part in parts) for parts in [*formatted, *whole]]
    return [text for text in texts if not re.fullmatch(r"--[a-z-]+", text)]


def test_no_text_of_the_source_writes_a_setting_or_a_flag():
    found = [
        f"{file}: {text}"
        for file, nodes in _sources().items()
        for text in _texts(nodes)
        if CALL.search(text)
        or WHOLE_CALL.search(text)
        or (file.parts[0] not in ("cli", "public") and FLAG.search(text) and not PROGRAMS.search(text))
    ]
    assert not found, "name a setting once, as both sides know it: `dtype (--dtype float32)`"


WRITTEN = re.compile(r"\br2med ([a-z][a-z-]*)((?: (?![:;,()]|r2med)[^ ]+)*)")
TYPED_FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")
VERBS = ("and", "cannot", "corpus", "does", "writes", "wrote")
"""What a sentence says that r2med does."""


def _written_commands() -> Iterator[tuple[str, str, str]]:
    """Yield the commands that are written in texts of the source: the place, the first word and the rest."""
    for file, nodes in _sources().items():
        for text in _texts(nodes):
            for found in WRITTEN.finditer(re.sub(r"<ast[^>]*>", "VALUE", text)):
                yield f"{file}: {found[0]}", found[1], re.split(r"[;:,()'] ?|\. ", found[2])[0]


def test_every_command_in_a_text_exists_with_its_flags():
    commands, wrong, count = command().commands, [], 0
    for place, word, rest in _written_commands():
        if word not in commands:
            wrong += [place] * (word not in VERBS)
            continue
        count += 1
        words = [word, *rest.split()[: hasattr(commands[word], "commands")]]
        inner = getattr(commands[word], "commands", {})
        if inner and words[-1] not in inner:
            wrong += [place] * bool(rest)  # without a rest, the sentence is about the group
            continue
        known = {"--help", *_flags(" ".join(words))}
        wrong += [f"{place} {flag}" for flag in TYPED_FLAG.findall(rest) if flag not in known]
    assert count > 50
    assert not wrong
