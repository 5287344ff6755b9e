"""Shell completion: the words that can come next. It reads the names of cards and imports no heavy module."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words, parse

if TYPE_CHECKING:
    from r2med.foundation.runtime.stage_table import Kind

_JOINTS = re.compile(r"→\s*|->\s*|[+(,=\[]\s*")
"""Signs after which a name can start within one word, if a system is typed in quotes."""


def systems(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the systems that complete a word, or the stages that can follow an arrow."""
    typed = joined_words([*(ctx.params.get("systems") or ()), incomplete])[-1]
    kept = typed.removesuffix(incomplete)
    return [candidate.removeprefix(kept) for candidate in continued(typed)]


def continued(typed: str) -> list[str]:
    """Return the systems that complete a text such as `bm25 → bge-`."""
    joints = list(_JOINTS.finditer(typed))
    start = joints[-1].end() if joints else 0
    joint = joints[-1][0].strip() if joints else ""
    return [typed[:start] + name for name in _matching(_next_names(typed[:start], joint), typed[start:])]


def _next_names(before: str, joint: str) -> Iterable[str]:
    from r2med.foundation.core import plugins
    from r2med.foundation.runtime.stage_table import known_names

    if joint in ("(", ",", "="):
        return plugins.files("llms", ".toml") if joint == "(" else ()
    if joint == "+":
        return known_names("retrieve")
    kinds = _kinds_before(_inside_brackets(before)) if joint else ()
    if not kinds:
        return [*known_names("expand"), *known_names("retrieve"), *plugins.files("systems", ".toml")]
    return known_names("retrieve" if kinds == ("expand",) else "rerank")


def _inside_brackets(text: str) -> str:
    """Return what is typed since the last bracket that is still open."""
    opened = [0]
    for index, sign in enumerate(text):
        if sign == "[":
            opened.append(index + 1)
        elif sign == "]" and len(opened) > 1:
            opened.pop()
    return text[opened[-1] :]


def _kinds_before(text: str) -> tuple[Kind, ...]:
    """Return the kind of each stage before the last arrow; an unknown name counts as a retriever."""
    from r2med.foundation.runtime.stage_table import kind_of

    try:
        calls = parse(re.sub(r"(→|->)\s*$", "", text))
    except UserError:
        return ()
    return tuple(kind_of(stage[0].name) or "retrieve" for stage in calls)


def expansions(incomplete: str) -> list[str]:
    """Return the methods of expansion that continue a word."""
    return _named("expand", incomplete)


def retrievers(incomplete: str) -> list[str]:
    """Return the retrievers that continue a word."""
    return _named("retrieve", incomplete)


def rerankers(incomplete: str) -> list[str]:
    """Return the rerankers that continue a word."""
    return _named("rerank", incomplete)


def stages(incomplete: str) -> list[str]:
    """Return the stages of any kind that continue a word."""
    from r2med.public.stage_help import PURPOSE, stage_names

    return [name for kind in PURPOSE for name in _matching(stage_names(kind), incomplete)]


def models(incomplete: str) -> list[str]:
    """Return the embedding models and cross-encoders that continue a word."""
    return [*_cards("models", incomplete), *_cards("rerankers", incomplete)]


def llms(incomplete: str) -> list[str]:
    """Return the LLMs that continue a word."""
    return _cards("llms", incomplete)


def kinds(incomplete: str) -> list[str]:
    """Return the kinds of list that continue a word."""
    from r2med.public.catalogue_functions import KINDS_OF_LISTS

    return _matching(KINDS_OF_LISTS, incomplete)


def anything(incomplete: str) -> list[str]:
    """Return the stages, models, LLMs and datasets that continue a word."""
    from r2med.data.dataset_cards import cards

    known = [*stages(incomplete), *models(incomplete), *llms(incomplete), *_matching(cards(), incomplete)]
    return list(dict.fromkeys(known))


def suites(incomplete: str) -> list[str]:
    """Return the suites that continue a word."""
    return _cards("suites", incomplete)


def datasets(incomplete: str) -> list[str]:
    """Return the datasets and groups that continue a word, which may hold several with commas."""
    from r2med.data.dataset_cards import cards, groups

    earlier, comma, word = incomplete.rpartition(",")
    known = dict.fromkeys([*cards(), *groups(), *groups()["demo"]])
    return [f"{earlier}{comma}{name}" for name in _matching(known, word)]


def _named(kind: Kind, incomplete: str) -> list[str]:
    from r2med.foundation.runtime.stage_table import known_names

    return _matching(known_names(kind), incomplete)


def _cards(kind: str, incomplete: str) -> list[str]:
    from r2med.foundation.core import plugins

    return _matching(sorted(plugins.files(kind, ".toml")), incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
