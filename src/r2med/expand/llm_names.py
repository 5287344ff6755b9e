"""An LLM's name as a folder can have it, and back: endpoints name models with slashes and colons.

`/` is written `--`, as the hub's own cache does, and `:` is written `++`. What else no folder should have, and what
would read as one of the two, is `+` with two hexadecimal digits for each byte. So no two names share a folder.
"""

from __future__ import annotations

import re

from r2med.errors import UserError

_MARKS = {"/": "--", ":": "++"}
_SPECIAL = re.compile(r"^[^A-Za-z0-9]|-(?=[-/])|[^A-Za-z0-9._-]")
_WRITTEN = re.compile(r"--|\+\+|(?:\+[0-9A-F]{2})+")


def folder_name(llm: str) -> str:
    """Return the name of the folder of an LLM's texts."""
    if not llm.strip() or not llm.isprintable():
        raise UserError(f"{llm!r} is no name of a model")
    return _SPECIAL.sub(_write, llm)


def llm_name(folder: str) -> str:
    """Return whose texts a folder holds: the inverse of `folder_name`; any other folder's name is as it is."""
    return _WRITTEN.sub(_read, folder)


def _write(found: re.Match[str]) -> str:
    # Not at the start, where a shell would take a hyphen for an option.
    if found.start() and found[0] in _MARKS:
        return _MARKS[found[0]]
    return "".join(f"+{byte:02X}" for byte in found[0].encode())


def _read(found: re.Match[str]) -> str:
    for letter, mark in _MARKS.items():
        if found[0] == mark:
            return letter
    return bytes.fromhex(found[0].replace("+", "")).decode(errors="replace")
