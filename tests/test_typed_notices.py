"""A command line shows the settings of notices as flags. Every flag that a notice names exists."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import r2med as package
from r2med.analysis.material import Material
from r2med.cli.app import command
from r2med.data.tables.columns import ROLES
from r2med.data.tables.importing import plan_import
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Command, Notice, Setting
from r2med.foundation.pages.page import Note, Page, Section, Table
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.typed_notices import as_typed, command_words, flag_name, page_as_typed

SOURCE = Path(package.__file__).parent
SETTINGS = [each.name for each in fields(Setup)]
REST = {
    **dict.fromkeys(("Setup", "run", "generate", "answer"), SETTINGS),
    "import_data": [
        *inspect.signature(plan_import).parameters,
        *(role for roles in ROLES.values() for role in roles),
    ],
    "analyse": [each.name for each in fields(Material)],
}
"""Function -> the names that it takes as **settings."""


@pytest.mark.parametrize(
    ("setting", "typed"),
    [
        (Setting("Setup", trust_remote_code=True), "--trust-remote-code"),
        (Setting("Setup", device="cpu", dtype="float32"), "--device cpu --dtype float32"),
        (Setting("Setup", dtype=...), "--dtype"),
        (Setting("Setup", model_paths={"minilm": "DIR"}), "--model-path minilm=DIR"),
        (Setting("Setup", models_kept=5), "Setup(models_kept=5)"),  # it has no flag
        (Setting("run", expand=["hyde", "rm3"], llms=["o3-mini"]), "--expand hyde --expand rm3 --llm o3-mini"),
        (Setting("board", texts=False), "--without-texts"),
        (Command("run", "rm3 → bm25", data="demo"), "r2med run 'rm3 → bm25' --data demo"),
        (Command("run", ["bm25", "rm3"], data="it's"), """r2med run bm25 rm3 --data 'it'"'"'s'"""),
        (Command("import_data", "a.csv", text="COLUMN"), "r2med data import a.csv --text COLUMN"),
    ],
)
def test_settings_become_what_one_types(setting, typed):
    assert as_typed(Notice("see (", setting, ")")) == f"see ({typed})"


def test_only_settings_change_on_a_command_line():
    assert as_typed("Setup(device='cpu')") == "Setup(device='cpu')"
    assert (
        as_typed(str(UserError("no Setup(x): ", UserError(Setting("Setup", offline=True))))) == "no Setup(x): --offline"
    )


def test_sentences_of_a_page_name_flags_and_cells_of_its_tables_stay():
    call = Notice(Setting("Setup", offline=True))
    page = page_as_typed(Page("", [Section("", [Note(call), Table((), [(call,)], note=call)], call, [call])]))
    table = Table((), [(call,)], note="--offline")
    assert page.sections[0] == Section("", [Note("--offline"), table], "--offline", ["--offline"])


@cache
def _sources() -> dict[Path, list[ast.AST]]:
    """Return the nodes of each file of the package that calls and texts are made of."""
    kinds = (ast.Call, ast.JoinedStr, ast.Constant, ast.Expr)
    parsed = {
        file.relative_to(SOURCE): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))
    }
    return {file: [node for node in ast.walk(tree) if isinstance(node, kinds)] for file, tree in parsed.items()}


def _settings() -> Iterator[tuple[str, ast.Call]]:
    """Yield all settings and commands of notices in the source, with their places."""
    for file, nodes in _sources().items():
        for node in nodes:
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if named and node.func.id in ("Setting", "Command"):
                yield f"{file}:{node.lineno}", node


def _flags(words: str) -> set[str]:
    """Return the flags of a command."""
    found = command()
    for word in words.split():
        found = found.commands[word]
    return {flag for each in found.params for flag in (*each.opts, *each.secondary_opts)}


def _every_flag() -> set[str]:
    commands, flags = [command()], set()
    while commands:
        each = commands.pop()
        commands += getattr(each, "commands", {}).values()
        flags |= {flag for parameter in each.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    return flags


def test_every_setting_of_a_notice_is_a_parameter_with_a_flag():
    wrong = []
    for place, call in _settings():
        name = ast.literal_eval(call.args[0])
        known = {*inspect.signature(getattr(package, name)).parameters, *REST.get(name, ())}
        flags = _every_flag() if name == "Setup" else _flags(command_words(name))
        for keyword in (each for each in call.keywords if each.arg):  # without one for **{name: value}
            flag = flag_name(keyword.arg)
            if isinstance(keyword.value, ast.Constant) and keyword.value.value is False:
                flag = f"--without-{keyword.arg}"
            if keyword.arg not in known or (flag and flag not in flags):
                wrong.append(f"{place}: {name}({keyword.arg}=...) {flag}")
    assert not wrong


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
    assert found == ["foundation/runtime/typed_notices.py: --without-" + found[0].partition("--without-")[2]], (
        'write it as a value, such as Setting("Setup", dtype="float32"): a command line shows its flag'
    )


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
