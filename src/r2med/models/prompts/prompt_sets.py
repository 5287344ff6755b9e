"""Sets of prompt templates: those of this package and of plugins by name, others by their folder.

A set is a folder of templates that replace ours of the same names. Its name is a setting of a stage, as in
hyde(o3-mini, prompts=short). It is therefore part of the name of a system, of its record and of its table row.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from r2med.foundation.core.errors import UserError, nearest, unknown
from r2med.foundation.core.names import folders_of
from r2med.foundation.core.spec import decoded, typed_path
from r2med.foundation.store.files import write_atomically
from r2med.models.prompts.templates import SUFFIX, Template, open_templates, read_template

PROMPTS_MEANING = (
    "a set of prompt templates, its name (r2med list prompts) or folder; empty: that of the run or built-in"
)


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
