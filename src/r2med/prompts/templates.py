"""Prompts from template files: found by name, checked before anything is asked, filled without surprises."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path

from r2med import plugins
from r2med.data.dataset import Dataset
from r2med.errors import UserError, nearest
from r2med.prompts.checking import FIELD, check_fields
from r2med.prompts.own import SUFFIX, check_names, kind_in, own_files
from r2med.store import digest

FIELDS: Mapping[str, tuple[str, ...]] = {
    "listwise": ("query", "passages", "count"),
    "groupwise": ("query", "passages", "count"),
    "pointwise": ("query", "passages"),
    "system": (),
}
"""What the templates of rerankers may name; those of expansions are told by their cards and stages. There is no field
for anything else, so nothing else can be asked for."""


@dataclass(frozen=True)
class Template:
    """A text with fields."""

    file: str
    text: str

    def names(self, field: str) -> bool:
        """Tell whether the template has a field."""
        return field in FIELD.findall(self.text)

    def render(self, values: Mapping[str, str]) -> str:
        """Fill the fields in one pass: a query may contain braces, so what was filled in is not read again."""
        return FIELD.sub(lambda field: values[field[1]], self.text)


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
        self.texts[name] = _read(self.files[name])
        return str(self.files[name]), self.texts[name]

    def template(self, method: str, kind: str = "", fields: Sequence[str] | None = None) -> Template:
        """Return the template METHOD.KIND, or METHOD for all kinds. Raises UserError if it names other fields."""
        for_all = not kind or (method in self.files and f"{method}.{kind}" not in self.files)
        template = Template(*self.read(method if for_all else f"{method}.{kind}"))
        check_fields(template.file, template.text, method, FIELDS[method] if fields is None else fields)
        return template


def kind_of(dataset: Dataset) -> str:
    """Return a dataset's kind as templates are named: post, exam, case or similar-case."""
    return kind_in(dataset.card.kind if dataset.card else "")


def open_templates(folder: Path | None = None, kinds: Collection[str] = (), *, every: bool = False) -> Templates:
    """Return the templates; `folder` is the user's own, whose files are all checked.

    `kinds` are those that will be asked for, or, with `every`, all of them: then a template of another is an error.
    """
    files = plugins.files("prompts", SUFFIX)
    if folder is None:
        return Templates(files)
    own = own_files(folder, files)
    check_names(own, files, {name.partition(".")[0] for name in files}, kinds, every)
    for name, path in own.items():
        if (method := name.partition(".")[0]) in FIELDS:
            check_fields(str(path), _read(path), method, FIELDS[method])
    return Templates({**files, **own})


def _read(file: Traversable) -> str:
    try:
        # Some editors put a mark before the first letter, which the model would be shown.
        return file.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError:
        raise UserError(f"{file}: a template must be UTF-8 text") from None
    except OSError as error:
        raise UserError(f"{file}: it cannot be read ({error.strerror})") from None
