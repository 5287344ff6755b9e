"""Errors that users can fix: one line that says what is wrong, where, what would be right and how to fix it."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


class UserError(Exception):
    """An error that the user can fix. Its text is one line, shown without a traceback. The exit code is 2.

    A setting has the name that it has in Python, and its flag: `device (--device cpu)`.
    """

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))

    def __reduce__(self) -> tuple[Callable[..., UserError], tuple[Any, ...], dict[str, Any]]:
        return _copied, (type(self), *self.args), self.__dict__


def _copied(kind: type[UserError], *args: object) -> UserError:
    """Return an error with its text. A subclass may take other arguments, so it is not called."""
    return kind.__new__(kind, *args)


class MissingExtraError(UserError):
    """An optional part is not installed."""

    def __init__(self, what: object, extra: str, hint: str = "") -> None:
        from r2med.foundation.core.installation import install_extra

        super().__init__(f"{what} needs an optional part: {install_extra(extra)}{hint}")


def check_installed(what: object, modules: Iterable[str]) -> None:
    """Raise MissingExtraError if one of these modules of optional parts is not installed. None is imported."""
    from r2med.foundation.core.installation import missing_part

    if extra := missing_part(modules):
        raise MissingExtraError(what, extra)


class ForeignCodeError(UserError):
    """Code of the user failed. Its words may quote texts and name files, so a server keeps them in its log."""


def refuse_table(value: object, what: str, shape: str) -> None:
    """Raise UserError if a value is a DataFrame, because only its owner knows which columns are meant."""
    if hasattr(value, "columns"):
        raise UserError(
            f"{what} is a {type(value).__name__}, but must be {shape}. Convert a table with qid, docno and score by "
            "{q: dict(zip(g.docno, g.score)) for q, g in frame.astype({'qid': str, 'docno': str}).groupby('qid')}, "
            "and a table of ids and texts by dict(zip(frame.id, frame.text))"
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean X?)`` for the closest known name; empty if no name is close."""
    by_lower = {k.lower(): k for k in known}
    cutoff = 0.5 if len(name) < 3 else 0.65  # one of two letters may differ, but half of a longer name is too much
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return f" (did you mean {by_lower[close[0]]}?)" if close else ""


def nearest_path(typed: str) -> str:
    """Return `` (did you mean X?)`` for the closest file or folder beside a path that does not exist."""
    name = Path(typed).name
    try:
        beside = sorted(each.name for each in Path(typed).expanduser().parent.iterdir())
    except (OSError, ValueError, RuntimeError):  # no such folder, no possible path, no such user
        return ""
    found = nearest(name, beside) if name else ""
    return found.replace("mean ", f"mean {typed[: typed.rindex(name)]}", 1)


def unknown(noun: str, name: str, known: Iterable[str], more: str = "") -> UserError:
    """Return the error for an unknown name, with the nearest known name and then `more` or all names."""
    names = list(known)
    return UserError(f"no {noun} {name!r}{nearest(name, names)}: {more or ', '.join(names) or 'there are none'}")


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def checked_name(name: str, what: str) -> str:
    """Return `name` if it can be part of a file name. A path in it must never reach the file system."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is not a {what} name: letters, digits, '.', '_', '+' and '-' only")
    return name


_FAULTS = {"missing": "this field is needed", "extra_forbidden": "there is no such field"}
_TYPES = {
    "string": "a text in quotes",
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "bool": "true or false",
    "tuple": "a list in brackets",
    "list": "a list in brackets",
    "dict": "a table",
    "model": "a table",
}
"""First part of pydantic's error type -> the value that a file should have there."""


def expected_type(kind: str) -> str:
    """Return the value that a field should have by pydantic's error type; empty if the type is not the fault."""
    begin, _, end = kind.partition("_")
    return _TYPES.get(begin, "") if end in ("type", "parsing", "parsing_size", "from_float", "number") else ""


def explained(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Return the first fault that pydantic found with its position, such as queries[2], in plain words.

    `known` are the names of all fields.
    """
    first = error.errors()[0]
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    field, kind = "".join(parts).removeprefix("."), first["type"]
    if wanted := expected_type(kind):
        fault = f"it must be {wanted}, not {reprlib.repr(first['input'])}"
    else:
        message = first["msg"].removeprefix("Value error, ").replace("Input should be", "it must be")
        fault = _FAULTS.get(kind, message)
    hint = nearest(field, known) if kind == "extra_forbidden" else ""
    # A fault of several fields together names them itself.
    return f"{field}: {fault}{hint}" if field else fault
