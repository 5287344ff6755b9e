"""docs/stages.md: every stage with its settings, from the declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from generators.markdown import NOTICE, code, prose, table
from r2med.foundation.core.names import BUILT_IN_STAGES, KINDS, Kind, stage_class
from r2med.models.crossencoders.reranker_cards import RERANKERS
from r2med.models.encoders.model_cards import MODELS
from r2med.public.stage_help import FORMS, PURPOSE, stage_pages
from r2med.public.stage_settings import StageSetting, help_of
from r2med.systems.expand.method_cards import METHODS
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

HEAD = """# Stages and their settings

A system is made of stages, joined by arrows: `hyde(o3-mini) → bm25(k1=1.2) → bge-reranker@100` ([systems](systems.md)).
The word in front names the stage, a value without a name is its argument, `KEY=VALUE` changes a setting, and `@100` is
the depth of a reranker. `r2med show NAME` prints the settings of one stage.
"""

TITLES = {"expand": "Expansions", "retrieve": "Retrievers", "rerank": "Rerankers", "build": "Steps of a build"}
LLM_FORMS = BUILT_IN_STAGES["rerank"].forms

OF_CARDS = {
    "expand": ("Methods with a card", METHODS, "cards.md#methods-of-expansion"),
    "retrieve": ("Dense models", MODELS, "cards.md#dense-models"),
    "rerank": ("Cross-encoders", RERANKERS, "cards.md#rerankers"),
}


def page() -> str:
    """Return the page."""
    systems = (part for kind in KINDS for part in (*_kind(kind, _declared(kind)), *_without_code(kind)))
    return HEAD + "".join((*systems, *_kind("build", BUILT_IN_STAGES["build"].names), NOTICE))


def _declared(kind: Kind) -> list[str]:
    """Return the stages with a section of their own: those with code, and the forms of LLM rerankers."""
    return [*(LLM_FORMS if kind == "rerank" else ()), *BUILT_IN_STAGES[kind].names]


def _kind(kind: str, names: Iterable[str]) -> Iterator[str]:
    purpose = PURPOSE[kind]
    yield f"\n## {TITLES[kind]}\n\nThey {purpose}.\n"
    for name in names:
        (shown,) = [each for each in stage_pages(name) if each["kind"] == kind]
        yield f"\n### `{name}`\n\n{prose(shown['summary'])}\n\n```text\n{shown['typed']}\n```\n" + _settings(
            [[StageSetting(**each) for each in shown["settings"]]]
        )


def _without_code(kind: Kind) -> Iterator[str]:
    yield _of_cards(kind)
    if kind == "rerank":
        yield _llm_rerankers()
    if prefixes := BUILT_IN_STAGES[kind].prefixes:
        rows = [(code(FORMS[prefix][0]), FORMS[prefix][1]) for prefix in prefixes]
        yield f"\n### {TITLES[kind]} without a card\n\n" + table(("typed", "what it is"), rows)


def _of_cards(kind: Kind) -> str:
    title, catalogue, link = OF_CARDS[kind]
    names = [name for name in catalogue if ":" not in name]
    listed = ", ".join(map(code, names))
    summary = (stage_class(names[0], kind).__doc__ or "").strip().partition("\n")[0]
    return f"\n### {title}\n\n{summary} [Their cards]({link}): {listed}.\n" + _settings(
        [list(help_of(name, kind)) for name in names]
    )


def _llm_rerankers() -> str:
    by_form = {form: [code(name) for name, card in LLM_RERANKERS.items() if card.form == form] for form in LLM_FORMS}
    head = "\n### LLM rerankers with a card\n\nThey ask an LLM in one of the forms above ([their cards]"
    head += "(cards.md#llm-rerankers)). `r2med show NAME` prints the settings of one.\n\n"
    return head + table(("form", "names"), ((form, ", ".join(names)) for form, names in by_form.items()))


def _settings(declared: list[list[StageSetting]]) -> str:
    """Return the table of the settings that these stages share; a default that differs is as the card says."""
    if not declared[0]:
        return "\nIt has no settings.\n"
    rows = []
    for each in zip(*declared, strict=True):
        first = each[0]
        defaults = {one.default or ("needed" if one.required else "") for one in each}
        default = code(defaults.pop()) if len(defaults) == 1 else "as the card says"
        rows.append((code(f"{AT.get(first.at, '')}{first.name}"), default, first.values, first.meaning))
    return "\n" + table(("setting", "default", "values", "meaning"), rows)


AT = {"depth": "@"}
