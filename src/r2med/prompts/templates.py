"""Prompts from template files: found by name, checked before anything is asked, filled without surprises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    "listwise": ("query", "passages", "count"),
    "groupwise": ("query", "passages", "count"),
    "pointwise": ("query", "passages"),
    "search-r1": ("query",),
    "search-o1": ("query", "limit"),
    "search-o1-documents": ("reasoning", "search", "passages"),
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
class Templates:
    """The template files of one user: those in the user's own folder go before those of plugins and ours."""

    files: Mapping[str, Traversable]
    texts: dict[str, str] = field(default_factory=dict)
    """What was read so far: its hash is what a record holds."""

    @property
    def hash(self) -> str:
        """The hash of all that was read."""
        return digest(self.texts)

    def read(self, name: str) -> tuple[str, str]:
        """Return a file's name and its text."""
        if name not in self.files:
            hint = nearest(name, self.files)
            raise UserError(f"no template {name}.txt{hint}: write one and give its folder as --prompts")
        file = self.files[name]
        try:
            self.texts[name] = file.read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            raise UserError(f"{file}: a template must be UTF-8 text") from None
        return str(file), self.texts[name]

    def template(self, method: str, kind: str = "") -> Template:
        """Return the template METHOD.KIND, or METHOD where it has no kinds, checked."""
        found = Template(*self.read(f"{method}.{kind}" if kind else method))
        _check(found, method)
        return found


def kind_of(dataset: Dataset) -> str:
    """Return a dataset's kind as templates are named: post, exam, case or similar-case."""
    return (dataset.card.kind.replace(" ", "-") if dataset.card else "") or DEFAULT_KIND


def open_templates(folder: Path | None = None) -> Templates:
    """Return the templates; `folder` is the user's own."""
    files = plugins.files("prompts", ".txt")
    if folder is None:
        return Templates(files)
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
    return Templates({**files, **own})


def _check(template: Template, method: str) -> None:
    allowed = FIELDS[method]
    named = _FIELD.findall(template.text)
    for name in named:
        if name not in allowed:
            words = ", ".join(f"{{{known}}}" for known in allowed) or "none"
            hint = nearest(name, allowed)
            raise UserError(f"{template.file}: unknown field {{{name}}}{hint}: fields of a {method} template: {words}")
    if "query" in allowed and "query" not in named:
        raise UserError(f"{template.file}: it does not name {{query}}: the model would not see the question")
