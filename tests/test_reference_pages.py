"""The generated pages of the docs: up to date, complete, and true of the files that r2med reads and writes."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING
from functools import cache
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import r2med
from r2med.assessment.review.reviews import Review
from r2med.cli.app import command
from r2med.foundation.core.names import BUILT_IN_STAGES, KINDS
from r2med.foundation.runtime.setup import printed_bytes
from support.answer_records import answer_record, answered
from support.synthetic_answers import write

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCE = Path(r2med.__file__).parent


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_the_generated_pages_are_as_the_declarations_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    pages = import_module("make_reference").pages()
    old = [path.name for path, text in pages.items() if path.read_text(encoding="utf-8") != text]
    assert old == [], "run python docs/make_reference.py"
    assert set((DOCS / "schemas").iterdir()) == {path for path in pages if path.parent.name == "schemas"}


@pytest.mark.parametrize(
    "page", ["commands.md", "api.md", "stages.md", "cards.md", "formats.md", "environment.md", "expected.md"]
)
def test_a_browser_shows_every_tag_and_every_bar_of_a_generated_page(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    assert "\\|" not in text, "the site shows the backslash"
    assert re.findall(r"</?(?!code>)[a-z][\w-]*>", re.sub(r"`[^`]*`", "", text)) == [], "put it into backticks"


def test_the_page_of_the_api_begins_with_ten_functions_and_has_every_public_name_by_its_task() -> None:
    text = text_of("api.md")
    assert len(re.findall(r"^\| \[`r2med\.\w+`\]", text.partition("## ")[0], re.MULTILINE)) == 10
    sections = re.split(r"^## ", text.partition("<!-- Below")[2], flags=re.MULTILINE)[1:]
    *tasks, values, extend, agreement = sections
    for names, listed in (
        (r2med.__all__, "".join(tasks)),
        (r2med.values.__all__, values),
        (r2med.extend.__all__, extend),
        (r2med.agreement.__all__, agreement),
    ):
        assert sorted(re.findall(r"^### `(\w+)`", listed, re.MULTILINE)) == names
    assert max(section.count("### ") for section in tasks) < 25 and len(tasks) > 5


def leaves(each: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command with its words."""
    for name, inner in getattr(each, "commands", {}).items():
        yield from leaves(inner, (*words, name))
    if not hasattr(each, "commands"):
        yield " ".join(words), each


def test_every_generated_command_is_the_public_function_of_its_name_by_one_rule() -> None:
    functions = {
        words: each.callback.function for words, each in leaves(command()) if hasattr(each.callback, "function")
    }
    assert len(functions) > 30
    for words, function in functions.items():
        *group, verb = words.split()
        name = "_".join([verb.replace("-", "_"), *group])
        assert function.__name__.rstrip("_") == name
        assert getattr(r2med, function.__name__) is function


OTHER_FLAGS = {
    "slice_by": "--slice",  # slice, format, all and from have a meaning in Python
    "layout": "--format",
    "everything": "--all",
    "count": "-n",
    "texts": "--without-texts",  # a switch that is on turns off
    "vectors": "--without-vectors",
    "rerankers": "--rerank",  # as of `r2med run`
}
"""Parameters whose flag has neither their name nor, if it may be repeated, its singular."""
OF_COMMANDS = {"help", "help_all", "only_plan", "page_format", "yes"}
"""What a command has beside the parameters of its function."""


def test_every_command_has_the_parameters_of_its_function_with_their_names_and_defaults() -> None:
    of_setup = r2med.Setup.model_fields
    seen: set[str] = set()
    for words, each in leaves(command()):
        taken = inspect.signature(each.callback.function).parameters
        of_view = inspect.signature(each.callback.view).parameters
        for typed in (one for one in each.params if one.name not in OF_COMMANDS):
            place = f"r2med {words}: {typed.name}"
            declared = taken.get(typed.name) or of_setup.get(typed.name) or of_view[typed.name]
            assert typed.name not in of_setup or typed.name in taken or {"setup", "settings"} & set(taken), place
            assert shown_default(typed) == python_default(typed.name, declared), place
            assert typed.required == (declared.default is Parameter.empty and declared.kind != VARIADIC), place
            if typed.param_type_name == "option" and typed.name in taken:
                expected = typed.name.rstrip("_").replace("_", "-")
                flag = OTHER_FLAGS.get(typed.name, f"--{expected}")
                singular = flag.removesuffix("s") if typed.multiple else flag
                assert {flag, singular, f"-{expected}"} & set(typed.opts), place
                seen.add(typed.name)
        rest = set(taken) - {typed.name for typed in each.params} - {"setup", "settings", "ready", "store"}
        assert rest == set(), f"r2med {words} cannot set {rest}"
    assert set(OTHER_FLAGS) <= seen


VARIADIC = Parameter.VAR_POSITIONAL


def shown_default(typed: Any) -> object:
    """Return the default of a parameter of a command, as Python would write it."""
    if typed.opts[0].startswith("--without-"):
        return not typed.default
    return str(typed.default) if isinstance(typed.default, Path) else typed.default


def python_default(name: str, declared: Any) -> object:
    """Return the default of a parameter or a field. A text or a sequence that is empty was not given."""
    if name == "memory":
        return printed_bytes(declared.default)
    return None if declared.default in ("", (), Parameter.empty, MISSING) else declared.default


def options(each: Any) -> Iterator[str]:
    for inner in getattr(each, "commands", {}).values():
        yield from options(inner)
    for one in each.params if not hasattr(each, "commands") else ():
        if not getattr(one, "hidden", False):
            yield from one.opts if one.param_type_name == "option" else ()


def test_the_page_of_commands_has_every_option_and_the_page_of_stages_every_stage() -> None:
    commands, stages = text_of("commands.md"), text_of("stages.md")
    every = set(options(command()))
    assert {"--data", "--budget", "-o"} <= every
    assert [option for option in every if f"`{option}`" not in commands] == []
    assert [name for kind in KINDS for name in BUILT_IN_STAGES[kind].names if f"### `{name}`" not in stages] == []


def variables_read() -> Iterator[str]:
    """Yield the environment variables that the source names where it reads or sets one, and those of its cards."""
    read = re.compile(r"environ(?:\.get|\.pop|\.setdefault)?[(\[]\s*\"([A-Z][A-Z0-9_]+)\"")
    ours = re.compile(r"\bR2MED_[A-Z_]+[A-Z]\b")
    for file in SOURCE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        yield from read.findall(text)
        yield from ours.findall(text)
    for file in SOURCE.rglob("*.toml"):
        yield from re.findall(r"^api_key_env = \"(\w+)\"", file.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_environment_variable_that_the_source_reads_is_on_the_page() -> None:
    read = set(variables_read())
    assert {"R2MED_HOME", "R2MED_THREADS", "RAY_ADDRESS", "DEEPSEEK_API_KEY"} <= read
    page = text_of("environment.md")
    assert sorted(name for name in read if f"`{name}`" not in page) == []


def test_no_variable_of_r2med_on_the_page_is_one_that_nothing_reads() -> None:
    assert set(re.findall(r"`(R2MED_[A-Z_]+)`", text_of("environment.md"))) <= set(variables_read())


def test_every_command_that_ends_with_a_code_of_its_own_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    page = import_module("generators.environment_page")
    codes = {"1": page.EXIT_1, "INCOMPLETE": page.EXIT_1, "2": page.EXIT_2, "UNDECIDED": page.EXIT_3}
    numbers = {"2": "2", "UNDECIDED": "3"}
    found: set[tuple[str, str]] = set()
    for name, each in leaves(command()):
        source = inspect.getsource(each.callback.view) if hasattr(each.callback, "view") else ""
        for code in re.findall(r"(?:code=|code = |return )([12]) if ", source):
            assert name in codes[code], f"{name} ends with {code}: write what it means in environment_page.py"
            found.add((name, code))
    for file in (SOURCE / "cli").glob("*_command.py"):
        text = file.read_text(encoding="utf-8")
        named = re.findall(r"\b(?:INCOMPLETE|UNDECIDED)\b", text)
        for code in (*re.findall(r"raise typer\.Exit\((\w+)\)", text), *named):
            name = file.stem.removesuffix("_command")
            assert name in codes[code], f"{file.name} ends with {code}: write what it means in environment_page.py"
            found.add((name, numbers.get(code, "1")))
    listed = {"1": page.EXIT_1, "2": page.EXIT_2, "3": page.EXIT_3}
    assert found == {(name, code) for code, names in listed.items() for name in names}


@cache
def validator(schema: str) -> jsonschema.Draft202012Validator:
    declared = json.loads(text_of(f"schemas/{schema}.json"))
    jsonschema.Draft202012Validator.check_schema(declared)
    return jsonschema.Draft202012Validator(declared)


def check(schema: str, value: object) -> None:
    validator(schema).validate(value)


def lines(path: Path) -> list[Any]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows
    return rows


def test_records_entries_audits_and_generated_texts_are_as_their_schemas_say(tmp_path: Path) -> None:
    r2med.run(["bm25", "hyde(author) → bm25"], data="demo/Biology", out="results")
    r2med.submit([], Path("entry.json"))
    folder = tmp_path / "results/demo/Biology"
    records = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
    assert len(records) == 2
    for record in records:
        check("record", record)
    (texts,) = folder.glob("*.generated.jsonl")
    for row in lines(texts):
        check("generated", row)
    check("entry", json.loads(Path("entry.json").read_bytes()))
    audited = r2med.audit("demo/Biology")
    assert set(audited.systems) == {record["system"] for record in records}
    check("audit", audited.model_dump(mode="json"))
    with pytest.raises(jsonschema.ValidationError):
        check("record", {**records[0], "mean": 3})


def test_answer_records_and_answers_are_as_their_schemas_say(tmp_path: Path) -> None:
    dataset = r2med.load("demo/MedQA-Diag")
    given = answered(dataset)
    path = write(answer_record(given, dataset), tmp_path, given)
    check("record", json.loads(path.read_text()))
    for line in path.with_suffix(".jsonl").read_text().splitlines():
        check("answers", json.loads(line))


def test_reviews_are_as_their_schema_says() -> None:
    check("review", Review(question="q", chunk="c", annotator="Ann", verdict="accept").model_dump(mode="json"))


@pytest.mark.parametrize("kind", ["query", "corpus", "qrels"])
def test_the_files_of_the_demo_are_as_their_schemas_say(kind: str) -> None:
    files = list((SOURCE / "data/demo").glob(f"*/{kind}.jsonl"))
    assert len(files) == 8
    for file in files:
        for row in lines(file):
            check(kind, row)


@pytest.mark.parametrize("kind", ["aspects", "nuggets"])
def test_aspects_and_nuggets_of_the_demo_are_as_their_schemas_say(kind: str) -> None:
    rows = lines(SOURCE / f"data/demo/Medical-Sciences/{kind}.jsonl")
    assert rows
    for row in rows:
        check(kind, row)


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("suite", "systems/system/suite_files/*.toml"),
        ("preset", "systems/system/preset_files/*.toml"),
        ("plan", "construction/examples/*/plan.toml"),
    ],
)
def test_toml_files_of_the_package_are_as_their_schemas_say(schema: str, pattern: str) -> None:
    files = list(SOURCE.glob(pattern))
    assert files
    for file in files:
        check(schema, tomllib.loads(file.read_text(encoding="utf-8")))
