"""Words of version 0.2 that still work, each with one line that gives the new ones. Version 0.4 forgets them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

UNTIL = "0.4"

_COMMANDS: Mapping[tuple[str, ...], tuple[tuple[str, ...], str]] = {
    ("import", "mteb"): (("records", "import"), "records import"),
    ("import", "tables"): (("data", "import"), "data import"),
    ("import",): (("data", "import"), "data import"),
    ("export", "mteb"): (("records", "export", "--format", "mteb"), "records export --format mteb"),
    ("export", "runs"): (("records", "export", "--format", "runs"), "records export --format runs"),
    ("export",): (("records", "export"), "records export"),
    ("models", "list"): (("list", "models"), "list models"),
    ("models", "show"): (("show", "--kind", "models"), "show NAME"),
    ("llms", "list"): (("list", "llms"), "list llms"),
    ("llms", "show"): (("show", "--kind", "llms"), "show NAME"),
    ("llms",): (("list", "llms"), "list llms"),
    ("stages", "list"): (("list", "stages"), "list stages"),
    ("stages", "show"): (("show", "--kind", "stages"), "show NAME"),
    ("stages",): (("list", "stages"), "list stages"),
    ("prompts", "list"): (("list", "prompts"), "list prompts"),
    ("prompts", "show"): (("show", "--kind", "prompts"), "show NAME"),
    ("build", "make"): (("build", "run"), "build run"),
}
"""The first words of a command as they were -> as they are, and how the new form is shown."""

_BUILD = ("run", "status", "show", "sample", "example", "--help", "-h")
"""What may follow `r2med build`; anything else was a plan."""

_FLAGS: Mapping[tuple[str, str], str] = {
    ("", "--dry-run"): "--plan",
    ("", "--local-only"): "--offline",
    ("analyse", "--depth"): "--passages",
}
"""A command ("" for all) and a flag as it was -> as it is."""


def renewed(words: Sequence[str], quiet: bool = False) -> list[str]:
    """Return the words of a command line as this version has them, and print a line for each that was replaced."""
    new, notices = _renewed_command(list(words))
    command = new[0] if new else ""
    for place, word in enumerate(new):
        if word == "--":  # what follows is no flag
            break
        flag, equals, value = word.partition("=")
        if (flag_now := _FLAGS.get((command, flag)) or _FLAGS.get(("", flag))) is not None:
            new[place] = f"{flag_now}{equals}{value}"
            notices.append(f"{flag} is now {flag_now}")
    for notice in () if quiet else notices:
        print(f"note: {notice}; the old form works until {UNTIL}", file=sys.stderr)
    return new


def _renewed_command(words: list[str]) -> tuple[list[str], list[str]]:
    for length in (2, 1):
        old = tuple(words[:length])
        if len(old) == length and old in _COMMANDS:
            new, shown = _COMMANDS[old]
            return [*new, *words[length:]], [f"r2med {' '.join(old)} is now r2med {shown}"]
    if words[:1] == ["build"] and words[1:] and words[1] not in _BUILD:
        return ["build", "run", *words[1:]], ["r2med build PLAN is now r2med build run PLAN"]
    return words, []
