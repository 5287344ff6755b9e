"""The templates that one way of expanding needs for one kind of task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from r2med.prompts.templates import Template, open_templates


@dataclass(frozen=True)
class Prompts:
    """The templates of one method for one kind of task."""

    system: str
    ask: Template
    examples: str
    refine: Template | None
    hash: str


def open_prompts(method: str, kind: str, folder: Path | None = None, *, refine: bool = False) -> Prompts:
    """Return what is needed to ask; files in the user's own folder go before those of plugins and ours."""
    templates = open_templates(folder, [kind])
    system = templates.template("system")
    ask = templates.template(method, kind)
    examples = templates.read(f"examples.{kind}")[1] if ask.names("examples") else ""
    refining = templates.template("refine", kind) if refine else None
    return Prompts(system.text, ask, examples, refining, templates.hash)
