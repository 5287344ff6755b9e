"""From flags to expansions: every method with every LLM, as calls; a flag that would change nothing is one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from r2med.errors import UserError
from r2med.spec import Call, parse_stage, split
from r2med.stages import stage_class


def expansions(methods: Iterable[str], llms: Sequence[str], samples: int = 1, *, llms_used: bool = False) -> list[Call]:
    """Return method × LLM. A method may have settings, as in hyde(samples=2), and may name its LLM itself.

    `llms_used` tells that a later stage takes the LLMs too, so that they are no mistake where no method does.
    """
    calls = [_call(part.strip()) for text in methods for part in split(text, ",", text)]
    names = checked_llms(llms)
    asking = [call for call in calls if _asks(call)]
    if not asking and samples != 1:
        raise UserError(f"--samples is for texts of an LLM, and {_words(calls)} asks none: leave it out")
    if not any(not call.arguments for call in asking) and names and not llms_used:
        why = "names its LLM already" if asking else "asks no LLM"
        raise UserError(f"--llm {names[0]}: --expand {_words(asking or calls)} {why}: leave one of the two out")
    return [made for call in calls for made in (_asking(call, names, samples) if _asks(call) else [call])]


def checked_llms(llms: Iterable[str]) -> list[str]:
    """Return the names of LLMs, which may be joined by commas; those that a system's name cannot hold are one line."""
    names = [name.strip() for text in llms for name in text.split(",")]
    for name in names:
        if not name or re.search(r"[()=→]|->", name):
            raise UserError(f"--llm {name!r}: an LLM's name is not empty and has no parentheses, '=' or arrows")
    return list(dict.fromkeys(names))


def _call(text: str) -> Call:
    calls = parse_stage(text)
    if len(calls) > 1:
        raise UserError(f"--expand {text}: expansions are not fused; repeat --expand to have each in its turn")
    stage_class(calls[0].name, "expand")
    return calls[0]


def _asks(call: Call) -> bool:
    return stage_class(call.name, "expand").needs == "llm"


def _asking(call: Call, llms: Sequence[str], samples: int) -> list[Call]:
    if not llms and not call.arguments:
        raise UserError(f"--expand {call} needs an LLM: --llm NAME (r2med llms list)")
    settings = call.settings
    if samples != 1:
        if "samples" in dict(settings):
            raise UserError(f"--samples {samples} beside --expand {call}: leave one of the two out")
        settings = (("samples", str(samples)), *settings)
    named = [call.arguments] if call.arguments else [(llm,) for llm in llms]
    return [replace(call, arguments=arguments, settings=settings) for arguments in named]


def _words(calls: Iterable[Call]) -> str:
    return ", ".join(map(str, calls))
