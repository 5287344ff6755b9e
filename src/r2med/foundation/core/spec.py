"""The grammar of system names: typed text is parsed into calls, and calls print as they are typed.

system = stage ("→" stage)*        "->" is read as "→"
stage  = call ("+" call)*          several calls are fused
call   = name ["(" argument ("," argument)* ")"] ["@" depth]
       | "[" system "]"            a whole system, used as a retriever
argument = [key "="] stage-or-word

Braces make several systems, and are replaced before the text is parsed: `bge-reranker@{10,20}`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote

from r2med.foundation.core.errors import UserError

ARROW = " → "

DEEPEST = 20
"""Maximum depth of nested parentheses and brackets. Real systems need fewer; each level is a level of recursion."""

MAX_VARIANTS = 1000
"""Maximum number of systems that the braces of one text make. Each pair of braces multiplies their number."""

PATHS = ("path:", "run:", "folds:")
"""Prefixes of names that are paths."""

_EXAMPLE = "bm25 → bge-reranker@100, or in quotes 'bm25 -> bge-reranker@100', since a shell writes a file for a bare >"

_AWKWARD = re.compile(r"[\s()\[\]{}+,=@%]|→|->")
"""Characters with a meaning in the grammar. A name with such a path would not parse back."""

PAIRS = {"(": ")", "[": "]", "{": "}"}
"""Signs that are opened -> the signs that close them."""

_INSTEAD = r"-|=|>|=>|\|"
"""Signs that people write instead of an arrow, and the rest of `->` after a shell has used its > as a redirect."""
_BEGINS = re.compile(rf"→|->|({_INSTEAD})$")
_ENDS = re.compile(rf"(→|->|(^|\s)({_INSTEAD}))\s*$")


def encoded(path: str) -> str:
    """Return a path that can be part of a name. Characters of the grammar are percent-encoded."""
    return _AWKWARD.sub(lambda sign: quote(sign[0], safe=""), path)


def decoded(path: str) -> str:
    """Return the path of a name. A path that exists exactly as typed is not decoded."""
    return path if typed_path(path).exists() else unquote(path)


def typed_path(text: str) -> Path:
    """Return a typed path with `~` expanded. Raises UserError if no such path can exist."""
    if "\0" in text:
        raise UserError(f"{text[:200]!r}: a path cannot have a null character")
    try:
        path = Path(text).expanduser()
        path.exists()  # fails here, and not later, if the name is too long for the file system
    except RuntimeError:
        raise UserError(f"{text[:200]} names the home folder of an unknown user") from None
    except OSError as error:
        raise UserError(f"{text[:200]}: {error.strerror}") from None
    return path


@dataclass(frozen=True)
class Call:
    """A name with its arguments. Arguments without a key come first, in order.

    The name of a system in brackets is its whole text, as `[bm25 → bge-reranker@100]`.
    """

    name: str
    arguments: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    depth: int | None = None
    """Number of candidates that a reranker reads. Only rerankers have a depth."""

    def __str__(self) -> str:
        inside = [*self.arguments, *(f"{key}={value}" for key, value in self.settings)]
        at = "" if self.depth is None else f"@{self.depth}"
        return f"{self.name}({', '.join(inside)}){at}" if inside else f"{self.name}{at}"

    @property
    def is_bracketed(self) -> bool:
        """True for a whole system in brackets."""
        return self.name.startswith("[")

    @property
    def system(self) -> Calls | None:
        """The system inside the brackets; None for a call without brackets."""
        return parse(self.name[1:-1]) if self.is_bracketed else None


def joined_words(words: Iterable[str]) -> list[str]:
    """Return the systems that words of a shell mean. Words with an arrow between them are one system."""
    joined: list[str] = []
    for word in words:
        if joined and (_BEGINS.match(word) or _ENDS.search(joined[-1])):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def variants(spec: str) -> list[str]:
    """Return the texts that the braces of a text mean, in their order: `a@{1,2}` is `a@1` and `a@2`.

    A text without braces is returned as it is. Raises UserError for braces that do not match, have an empty choice or
    make too many texts.
    """
    if "{" not in spec:
        return [spec]
    _check_balance(spec)
    texts = [spec]
    while any("{" in text for text in texts):
        texts = [each for text in texts for each in _first_braces_replaced(text, spec)]
        if len(texts) > MAX_VARIANTS:
            raise UserError(f"the braces of {spec!r} make more than {MAX_VARIANTS} systems: write fewer choices")
    return list(dict.fromkeys(texts))


def _first_braces_replaced(text: str, spec: str) -> list[str]:
    start = text.find("{")
    if start < 0:  # a choice of other braces had no braces of its own
        return [text]
    end = start + _closing(text[start:])
    choices = [choice.strip() for choice in split(text[start + 1 : end], ",")]
    if not all(choices):
        raise UserError(f"{spec!r} has braces with an empty choice: write values and commas, as in NAME@{{10,20}}")
    return [f"{text[:start]}{choice}{text[end + 1 :]}" for choice in choices]


Calls = tuple[tuple[Call, ...], ...]
"""The stages of a system. Each stage is one call, or several calls that are fused."""


def parse(spec: str) -> Calls:
    """Return the stages of a system, each as the calls to be fused."""
    _check_balance(spec)  # as typed, so that positions in messages are those of the user
    _refuse_braces(spec)
    return tuple(_fused(stage, spec) for stage in split(spec.replace("->", "→"), "→"))


def parse_stage(text: str) -> tuple[Call, ...]:
    """Return the calls of one stage."""
    _check_balance(text)
    _refuse_braces(text)
    return _fused(text.replace("->", "→"), text)


def printed_system(calls: Calls) -> str:
    """Return the calls of a system as typed text."""
    return joined_stages("+".join(map(str, stage)) for stage in calls)


def named_system(typed: str, names: Collection[str]) -> str:
    """Return the one of these names of systems that a person means: `rm3->bm25` is `rm3 → bm25`.

    A name may have a reader, as in `rm3 → bm25 · gpt4`. A text that means none of the names is returned as it is.
    """
    system, dot, reader = typed.partition(" · ")
    try:
        printed = f"{printed_system(parse(system))}{dot}{reader}"
    except UserError:
        return typed
    return printed if printed in names and typed not in names else typed


def joined_stages(stages: Iterable[object]) -> str:
    """Return stages, one after the other, as typed text."""
    return ARROW.join(map(str, stages))


def _fused(text: str, spec: str) -> tuple[Call, ...]:
    """Return the calls of one stage."""
    return tuple(_call(part, spec) for part in split(text, "+"))


def bracketed(calls: Calls) -> Call:
    """Return the call that holds a whole system."""
    return Call(f"[{printed_system(calls)}]")


def _call(text: str, spec: str) -> Call:
    # Only digits at the very end: a revision after a model name, as in hf:org/model@main, is not a depth.
    at = re.fullmatch(r"(.+?)\s*@\s*(\d{1,9})", text.strip(), re.DOTALL)
    text, depth = (at[1], int(at[2])) if at else (text.strip(), None)
    if text.startswith("[") and _closing(text) == len(text) - 1:
        return replace(bracketed(parse(text[1:-1])), depth=depth)
    name, paren, rest = text.partition("(")
    is_path = name.strip().startswith(PATHS)
    awkward = re.search(r"[,=)\[\]]" if is_path else r"[\s,=)>|\[\]]", name.strip())  # a folder may have spaces
    if not name.strip() or (paren and not rest.endswith(")")) or awkward:
        hint = "write it as NAME or NAME(SETTING=VALUE, …)"
        if is_path:
            hint = "in a path, signs of the grammar are percent-encoded, as %2C for a comma"
        elif text.startswith("["):
            hint = "brackets hold a whole system and stand alone, as in [hyde(o3-mini) → bm25]+bge"
        elif re.search(rf"(^|\s)({_INSTEAD})(\s|$)|[>|]", name):
            hint = f"stages are joined by arrows, as in {_EXAMPLE}"
        elif re.search(r"\)\s*@", text):
            hint = "a depth is a whole number of at most nine digits, as in NAME@100"
        elif not text and ("→" in spec or "->" in spec):
            hint = f"write a stage before and after every arrow, as in {_EXAMPLE}"
        raise UserError(f"cannot read {text!r} in the system {spec!r}: {hint}")
    arguments, settings = [], []
    _check_balance(rest[:-1], spec)  # as in a(b)(c), whose last sign does not close the first parenthesis
    for argument in split(rest[:-1], ",") if paren else []:
        key, equals, value = _key_value(argument.strip())
        if equals:
            settings.append((key, value))
        elif argument.strip():
            arguments.append(argument.strip())
    return Call(name.strip(), tuple(arguments), tuple(settings), depth)


def _refuse_braces(text: str) -> None:
    if "{" in text:
        raise UserError(
            f"{text!r} names {len(variants(text))} systems by its braces, and one is needed here: write it without "
            "braces (in a path, %7B and %7D)"
        )


def _closing(text: str) -> int:
    """Return the position of the bracket that closes the first one."""
    depths = itertools.accumulate((sign in "([{") - (sign in ")]}") for sign in text)
    return next(index for index, depth in enumerate(depths) if depth == 0)


def _key_value(argument: str) -> tuple[str, str, str]:
    # Only an "=" before the first parenthesis makes a setting, so fuse(bm25(k1=1)+bge) has no setting.
    head = re.split(r"[(\[]", argument, maxsplit=1)[0]
    key, equals, _ = head.partition("=")
    return key.strip(), equals, argument[len(key) + 1 :].strip() if equals else ""


def split(text: str, mark: str) -> list[str]:
    """Split a text at each mark outside parentheses, brackets and braces."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == mark and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _check_balance(text: str, spec: str = "") -> None:
    """Raise UserError if parentheses, brackets or braces do not match, are too deep, or if brackets are empty."""
    opened: list[int] = []
    for index, sign in enumerate(text):
        if sign in PAIRS:
            opened.append(index)
        elif sign in PAIRS.values():
            if not opened or PAIRS[text[opened[-1]]] != sign:
                fits = "not closed before it" if opened else "missing"
                missing = next(opening for opening, closing in PAIRS.items() if closing == sign)
                other = f"{text[opened[-1]]!r} at position {opened[-1] + 1}" if opened else f"its {missing!r}"
                raise UserError(f"{spec or text!r}: {sign!r} at position {index + 1}: {other} is {fits}")
            if sign == "]" and not text[opened[-1] + 1 : index].strip():
                raise UserError(
                    f"{spec or text!r}: the brackets at position {opened[-1] + 1} are empty: write a system in them, "
                    "as in [bm25 → bge-reranker@100]"
                )
            opened.pop()
        if len(opened) > DEEPEST:
            raise UserError(f"{(spec or text)[:60]!r}… has parentheses more than {DEEPEST} deep: write it with fewer")
    if opened:
        raise UserError(f"{spec or text!r}: {text[opened[-1]]!r} at position {opened[-1] + 1} is not closed")
