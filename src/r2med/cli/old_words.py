"""Words of version 0.2 that still work, each with one line that gives the new ones. Version 2.0 forgets them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

UNTIL = "2.0"

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
    ("analyse", "--by"): "--model",
    ("analyse", "--depth"): "--passages",
    ("serve", "--deadline"): "--timeout",
}
"""A command ("" for all) and a flag as it was -> as it is."""

_HIDDEN: Mapping[str, str] = {
    "--batch-tokens": "Setup(tokens_per_batch=N) sets it in Python",
    "--idle": "Setup(idle=SECONDS) sets it in Python",
    "--doubles": "r2med.score(QRELS, r2med.Run.read(FILE, doubles=True)) does the same",
}
"""Flags that still work, are not in the help pages and go away -> what to do instead."""

OWN_MODEL = "--model"
"""The flag of `r2med run` for a model of the user's own, which is now the system py:MODULE:NAME."""


def renewed(words: Sequence[str], quiet: bool = False) -> list[str]:
    """Return the words of a command line as this version has them, and print a line for each that was replaced."""
    new, notices = _renewed_command(list(words))
    command = new[0] if new else ""
    end = new.index("--") if "--" in new else len(new)  # no flag follows it
    flags, more = _renewed_flags(command, new[:end])
    for notice in () if quiet else (*notices, *more):
        print(f"note: {notice}; the old form works until {UNTIL}", file=sys.stderr)
    return [*flags, *new[end:]]


def _renewed_flags(command: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    new, notices = [], []
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if (command, flag) == ("run", OWN_MODEL):
            new.append(f"py:{value if equals else next(rest, '')}")
            notices.append(f"{OWN_MODEL} MODULE:NAME is now the system py:MODULE:NAME")
        elif (flag_now := _FLAGS.get((command, flag)) or _FLAGS.get(("", flag))) is not None:
            new.append(f"{flag_now}{equals}{value}")
            notices.append(f"{flag} is now {flag_now}")
        else:
            new.append(word)
            notices += [f"{flag} goes away: {_HIDDEN[flag]}"] if flag in _HIDDEN else []
    return new, notices


def _renewed_command(words: list[str]) -> tuple[list[str], list[str]]:
    for length in (2, 1):
        old = tuple(words[:length])
        if len(old) == length and old in _COMMANDS:
            new, shown = _COMMANDS[old]
            return [*new, *words[length:]], [f"r2med {' '.join(old)} is now r2med {shown}"]
    if words[:1] == ["analyse"] and "--list" in words:
        rest = [word for word in words[1:] if word != "--list"]
        return ["list", "analyses", *rest], ["r2med analyse --list is now r2med list analyses"]
    if words[:1] == ["build"] and words[1:] and words[1] not in _BUILD:
        return ["build", "run", *words[1:]], ["r2med build PLAN is now r2med build run PLAN"]
    return words, []
