"""Prompt templates: found by name, checked before an LLM is called, and filled in; and sets of them.

A set is a folder of templates that replace ours of the same names. Its name is a setting of a stage, as in
hyde(o3-mini, prompts=short). It is therefore part of the name of a system, of its record and of its table row.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import cards
from r2med.foundation.core.errors import UserError, nearest, unknown
from r2med.foundation.core.names import files_of, folders_of, stage_class
from r2med.foundation.core.names import kind_of as stage_kind
from r2med.foundation.core.spec import decoded, typed_path
from r2med.foundation.store import digest
from r2med.foundation.store.files import write_atomically

log = logging.getLogger("r2med")

SUFFIX = ".txt"
DEFAULT_KIND = "case"
FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")

# Braces in JSON or code are text. The patterns below are fields of other template languages, left in by mistake.
_DOUBLED = re.compile(r'\{\{\s*(?:[A-Za-z_]\w*\s*\}\}|")')
_DECORATED = re.compile(r"\{\s*([A-Za-z_]\w*)\s*(?:[.\[!:][^{}\n]*)?\}")

PROMPTS_MEANING = (
    "a set of prompt templates, its name (r2med list prompts) or folder; empty: that of the run or built-in"
)

_CLOSE = 0.75
"""Similarity above which one kind is a misspelling of another: exma and exam are similar, news and case are not."""


def declared_fields(method: str) -> tuple[str, ...] | None:
    """Return the fields that a stage declares for its template; None if no stage declares a template of this name.

    There is no field for anything else, so no prompt can show anything else.
    """
    kind = stage_kind(method)
    fields: tuple[str, ...] | None = stage_class(method, kind).template_fields(method) if kind else None
    return fields


def _required_fields(method: str) -> tuple[str, ...]:
    """Return the declared fields. Raises UserError if the stage of the template does not declare them."""
    fields = () if method == "system" else declared_fields(method)
    if fields is None:
        name = f"{method}{SUFFIX}"
        raise UserError(f"no fields are declared for the template {name}: add prompt_fields to the class of {method}")
    return fields


@dataclass(frozen=True)
class Template:
    """A text with fields in braces."""

    file: str
    text: str

    def names(self, field: str) -> bool:
        """Return True if the template has this field."""
        return field in FIELD.findall(self.text)

    def render(self, values: Mapping[str, str]) -> str:
        """Fill all fields in one pass. A query may contain braces, so inserted text is not read again."""
        return FIELD.sub(lambda field: values[field[1]], self.text)


def packaged_template(package: str, name: str) -> Template:
    """Return the template of this name in the folder `prompts` of a package."""
    file = package_files(package) / "prompts" / f"{name}{SUFFIX}"
    return Template(str(file), read_template(file))


@dataclass(frozen=True)
class Templates:
    """The template files for one stage. Files of a set have priority over those of plugins and of this package."""

    files: Mapping[str, Traversable]
    own: Collection[str] = ()
    """The names of the templates that come from the set."""
    texts: dict[str, str] = field(default_factory=dict)
    """The templates read so far. A record holds their digest."""

    @property
    def digest(self) -> str:
        """The digest of all templates read so far."""
        return digest(self.texts)

    def read(self, name: str) -> tuple[str, str]:
        """Return a file's name and its text."""
        if name not in self.files:
            hint = nearest(name, self.files)
            raise UserError(f"no template {name}.txt{hint}: write one and give its folder, as in prompts=DIR")
        self.texts[name] = read_template(self.files[name])
        return str(self.files[name]), self.texts[name]

    def name_of(self, method: str, kind: str = "") -> str:
        """Return the name of a method's template: METHOD.KIND, or METHOD for all kinds without their own template."""
        for_all = not kind or (method in self.files and f"{method}.{kind}" not in self.files)
        return method if for_all else f"{method}.{kind}"

    def template(self, method: str, kind: str = "", fields: Sequence[str] | None = None) -> Template:
        """Return the template of a method. Raises UserError if its fields differ from these or the declared ones."""
        template = Template(*self.read(self.name_of(method, kind)))
        allowed = _required_fields(method) if fields is None else fields
        _check_fields(template.file, template.text, method, allowed)
        return template


def kind_of(dataset: Dataset) -> str:
    """Return the kind of a dataset as in template names: post, exam, case or similar-case."""
    return _kind_in(dataset.card.kind if dataset.card else "")


def _kind_in(name: str) -> str:
    return name.replace(" ", "-") or DEFAULT_KIND


def open_templates(folder: Traversable | None = None, kinds: Collection[str] = (), *, every: bool = False) -> Templates:
    """Return the templates. `folder` is a set that the user chose; all its files are checked.

    `kinds` are the kinds of task that will be used. With `every`, there are no others, and a template of another kind
    is an error.
    """
    files = files_of("prompts", SUFFIX)
    if folder is None:
        return Templates(files)
    own = _own_files(folder, files)
    _check_names(own, files, kinds, every)
    for name, path in own.items():
        method = name.partition(".")[0]
        fields = () if method == "system" else declared_fields(method)
        if fields is not None:
            _check_fields(str(path), read_template(path), method, fields)
    # METHOD.txt of a set is for all kinds. Our templates of this method for single kinds must not override it.
    ours = {name: file for name, file in files.items() if name.partition(".")[0] not in own}
    return Templates({**ours, **own}, frozenset(own))


def log_origin(stage: str, folder: Traversable | None, kinds: Collection[str], used: Iterable[str]) -> None:
    """Log which templates of a stage come from a set, and which are built in.

    `used` are names without a kind, such as hyde or system.
    """
    if folder is None:
        return
    templates = open_templates(folder, kinds)
    names = dict.fromkeys(templates.name_of(name, kind) for name in used for kind in sorted(kinds))
    own = ", ".join(name for name in names if name in templates.own)
    rest = ", ".join(name for name in names if name not in templates.own)
    log.info("%s: %s from %s%s", stage, own or "nothing", folder.name, f"; {rest} built in" if rest else "")


def read_template(file: Traversable) -> str:
    """Return the text of a template. Raises UserError if it cannot be read."""
    try:
        # Some editors put a byte order mark before the first letter, which the model would see.
        return file.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError:
        raise UserError(f"{file}: a template must be UTF-8 text") from None
    except OSError as error:
        raise UserError(f"{file}: it cannot be read ({error.strerror})") from None


def _own_files(folder: Traversable, ours: Collection[str]) -> dict[str, Traversable]:
    """Return the templates of a folder by name. `ours` are the names of the existing templates."""
    if not folder.is_dir():
        raise UserError(f"prompts={folder}: there is no such folder")
    files = {file.name: file for file in folder.iterdir() if not file.name.startswith(".")}
    for name, file in sorted(files.items()):
        if not name.endswith(SUFFIX) and (name in ours or name.rpartition(".")[0] in ours):
            raise UserError(f"{file}: the name of a template ends in {SUFFIX}")
    own = {name.removesuffix(SUFFIX): file for name, file in sorted(files.items()) if name.endswith(SUFFIX)}
    if not own:
        raise UserError(f"prompts={folder}: it has no templates, such as hyde.case{SUFFIX}")
    return own


def _check_names(own: Mapping[str, Traversable], ours: Collection[str], kinds: Collection[str], every: bool) -> None:
    """Raise UserError for a file that is never used. Otherwise a typo in its name would silently keep our template.

    `kinds` are the kinds of the datasets. Without `every`, other datasets may have further kinds, so only a kind that
    looks like a misspelling of a known one is an error.
    """
    known = {*kinds, *(_kind_in(card.kind) for card in cards().values())}
    known |= {name.partition(".")[2] for name in ours if "." in name}
    for name, path in own.items():
        method, _, kind = name.partition(".")
        with_kinds = any(other.startswith(f"{method}.") for other in ours)
        if not (with_kinds or name in ours):
            names = "METHOD.KIND.txt, such as hyde.case.txt"
            raise UserError(f"{path}: no template has this name{nearest(name, ours)}: {names}")
        if kind and kind not in known and (every or difflib.get_close_matches(kind.lower(), known, 1, _CLOSE)):
            kinds_known = ", ".join(sorted(known))
            raise UserError(f"{path}: no dataset has the kind {kind!r}{nearest(kind, known)}: {kinds_known}")


def _check_fields(file: str, text: str, method: str, allowed: Sequence[str]) -> None:
    """Raise UserError if a template of this method has an unknown field or one that would not be filled in."""
    known = f"fields of a {method} template: {', '.join(f'{{{name}}}' for name in allowed) or 'none'}"
    if doubled := _DOUBLED.search(text):
        raise UserError(f"{file}: {doubled[0]} has double braces: write single ones; {known}")
    for match in _DECORATED.finditer(text):
        plain, name = FIELD.fullmatch(match[0]), match[1]
        if plain and name not in allowed:
            raise UserError(f"{file}: unknown field {match[0]}{nearest(name, allowed)}: {known}")
        # {key: value} with a space in it may be part of an example, but {query.answer} is a mistake.
        if not plain and (name in allowed or not re.search(r"\s", match[0])):
            raise UserError(f"{file}: {match[0]} is not a field: write only its name in braces; {known}")
    if "query" in allowed and "query" not in FIELD.findall(text):
        raise UserError(f"{file}: it does not name {{query}}: the model would not see the question")


# Sets of templates


def prompt_sets() -> Mapping[str, Traversable]:
    """Return the named sets: the folders in `prompts/` of this package and of plugins."""
    folders = [folder.path for folder in folders_of("prompts") if folder.path.is_dir()]
    inside = (entry for folder in folders for entry in folder.iterdir())
    return {entry.name: entry for entry in inside if entry.is_dir() and not entry.name.startswith((".", "_"))}


def find_set(typed: str) -> Traversable | None:
    """Return the folder of a set from its name or path; None for the built-in prompts.

    Raises UserError if there is no such set.
    """
    if not typed:
        return None
    named = prompt_sets()
    if typed in named:
        return named[typed]
    folder = typed_path(decoded(typed))
    if not folder.is_dir():
        known = f"{', '.join(named)}, or a folder of your own (r2med show --kind prompts hyde -o DIR makes one)"
        raise UserError(f"prompts={typed}: there is no such set and no such folder{nearest(typed, named)}: {known}")
    return folder


def named_templates(name: str, fixed: Mapping[str, Traversable] = MappingProxyType({})) -> dict[str, Template]:
    """Return the templates that a name means: those of a set or of a method, a single one, or one of `fixed`.

    Raises UserError if there are none.
    """
    built_in = open_templates()
    if name in fixed:
        return {name: Template(str(fixed[name]), read_template(fixed[name]))}
    if name in (sets := prompt_sets()) or ("/" in name and typed_path(name).is_dir()):
        templates = open_templates(sets.get(name) or typed_path(name))
        names = sorted(templates.own)
    else:
        templates = built_in
        names = sorted(known for known in built_in.files if name in (known, known.partition(".")[0]))
    if not names:
        raise unknown("template or set of templates", name, [*sets, *methods(), *fixed], "r2med list prompts shows all")
    return {name: Template(*templates.read(name)) for name in names}


def methods() -> dict[str, list[str]]:
    """Return the names with built-in templates, each with the kinds of task that have their own template."""
    kinds: dict[str, list[str]] = {}
    for name in sorted(open_templates().files):
        method, _, kind = name.partition(".")
        kinds.setdefault(method, []).extend([kind] if kind else [])
    return kinds


def templates_in(folder: Traversable, command: str) -> dict[str, Traversable]:
    """Return the templates of a command by name, as in build/judge. They can be shown, but no set replaces them."""
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {f"{command}/{file.name.removesuffix(SUFFIX)}": file for file in files if file.name.endswith(SUFFIX)}


def write_set(method: str, folder: Path) -> list[Path]:
    """Write the built-in templates of a method into a folder for editing. Raises UserError if a file exists already."""
    if method not in (known := methods()):
        raise unknown("method with templates", method, known)
    texts = {folder / f"{name}{SUFFIX}": template.text for name, template in named_templates(method).items()}
    for path in texts:
        if path.exists():
            raise UserError(f"{path} exists already: name another folder, or remove it first")
    for path, text in texts.items():
        write_atomically(path, f"{text}\n".encode())
    return list(texts)
