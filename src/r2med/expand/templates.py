"""Prompts from template files: found by name, checked before anything is asked, filled without surprises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from r2med import plugins
from r2med.data.model import Dataset
from r2med.errors import UserError, nearest
from r2med.store import digest

FIELDS: Mapping[str, tuple[str, ...]] = {
    "hyde": ("query",),
    "query2doc": ("query", "examples"),
    "lamer": ("query", "passages"),
    "refine": ("query", "passages", "draft"),
    "system": (),
}
"""What the templates of each method may name. There is no field for anything else, so nothing else can be asked for."""

DEFAULT_KIND = "case"

_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Template:
    """A text with fields."""

    file: str
    text: str

    def names(self, field: str) -> bool:
        """Tell whether the template has a field."""
        return field in _FIELD.findall(self.text)

    def render(self, values: Mapping[str, str]) -> str:
        """Fill the fields in one pass: a query may contain braces, so what was filled in is not read again."""
        return _FIELD.sub(lambda field: values[field[1]], self.text)


@dataclass(frozen=True)
class Prompts:
    """The templates of one method for one kind of task."""

    system: str
    ask: Template
    examples: str
    refine: Template | None
    hash: str


def kind_of(dataset: Dataset) -> str:
    """Return a dataset's kind as templates are named: post, exam, case or similar-case."""
    return (dataset.card.kind.replace(" ", "-") if dataset.card else "") or DEFAULT_KIND


def open_prompts(method: str, kind: str, folder: Path | None = None, *, refine: bool = False) -> Prompts:
    """Return what is needed to ask; files in the user's own folder go before those of plugins and ours."""
    files = _files(folder)
    texts: dict[str, str] = {}

    def read(name: str) -> tuple[str, str]:
        if name not in files:
            raise UserError(f"no template {name}.txt{nearest(name, files)}: write one and give its folder as --prompts")
        try:
            texts[name] = files[name].read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            raise UserError(f"{files[name]}: a template must be UTF-8 text") from None
        return str(files[name]), texts[name]

    def template(of: str) -> Template:
        found = Template(*read(f"{of}.{kind}"))
        _check(found, of)
        return found

    system = Template(*read("system"))
    _check(system, "system")
    ask = template(method)
    examples = read(f"examples.{kind}")[1] if ask.names("examples") else ""
    refining = template("refine") if refine else None
    return Prompts(system.text, ask, examples, refining, digest(texts))


def _files(folder: Path | None) -> dict[str, Traversable]:
    files = plugins.files("prompts", ".txt")
    if folder is None:
        return files
    folder = folder.expanduser()
    if not folder.is_dir():
        raise UserError(f"--prompts {folder}: there is no such folder")
    own: dict[str, Traversable] = {path.stem: path for path in sorted(folder.glob("*.txt"))}
    if not own:
        raise UserError(f"--prompts {folder}: it has no templates, such as hyde.case.txt")
    for name, path in own.items():
        # A misspelt name would leave the template it was to replace in use, and nobody would know.
        if name not in files and name.partition(".")[0] not in (*FIELDS, "examples"):
            raise UserError(
                f"{path} has no template's name{nearest(name, files)}: METHOD.KIND.txt, such as hyde.case.txt"
            )
    return {**files, **own}


def _check(template: Template, method: str) -> None:
    allowed = FIELDS[method]
    named = _FIELD.findall(template.text)
    for field in named:
        if field not in allowed:
            words = ", ".join(f"{{{name}}}" for name in allowed) or "none"
            hint = nearest(field, allowed)
            raise UserError(f"{template.file}: unknown field {{{field}}}{hint}: fields of a {method} template: {words}")
    if "query" in allowed and "query" not in named:
        raise UserError(f"{template.file}: it does not name {{query}}: the model would not see the question")
