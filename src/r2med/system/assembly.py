"""From a spec to a system: which stage is an expansion, a retriever or a reranker, and who builds it."""

from __future__ import annotations

from pathlib import Path

from r2med import stages as stage_table
from r2med.errors import UserError, nearest
from r2med.expand import Expander
from r2med.expand.expansion import fed
from r2med.rerank import registry as rerank
from r2med.retrieve.candidates import Candidates
from r2med.setup import Setup
from r2med.spec import ARROW, Call, parse
from r2med.stages import PREFIXES, names, retriever
from r2med.system.model import System
from r2med.system.presets import is_preset, spelt_out

Stage = list[Call]
Stage_ = stage_table.Stage


def assemble(spec: str, setup: Setup) -> System:
    """Return the system that a spec names."""
    stages = [_with_llm(stage, setup.llm) for stage in parse(spelt_out(spec, setup.llm))]
    before, search, after = _sorted_out(stages, spec, setup)
    expander = _expander(before, search, setup) if before is not None else None
    rerankers = tuple(rerank.build(call, setup, setup.depth, setup.store) for call in after)
    return System(search, setup, expander, rerankers)


def wants_llm(spec: str) -> bool:
    """Tell whether a part of a system needs an LLM and does not name one."""
    stages = parse(spec)
    if is_preset(stages):
        return not stages[0][0].arguments
    return any(_lacks_llm(call) for stage in stages for call in stage)


def with_llm(spec: str, llm: str) -> str:
    """Return a spec in which every part that needs an LLM names one."""
    stages = parse(spec)
    if is_preset(stages) and not stages[0][0].arguments:
        return str(Call(stages[0][0].name, (llm,), stages[0][0].settings))
    return ARROW.join("+".join(map(str, _with_llm(stage, llm))) for stage in stages)


def _lacks_llm(call: Call) -> bool:
    kind = stage_table.kind_of(call.name)
    return kind is not None and stage_table.stage_class(call.name, kind).needs == "llm" and not call.arguments


def _with_llm(stage: Stage, llm: str) -> Stage:
    if not llm:
        return stage
    return [Call(c.name, (llm,), c.settings, c.depth) if _lacks_llm(c) else c for c in stage]


def _sorted_out(stages: list[Stage], spec: str, setup: Setup) -> tuple[Call | None, Stage_, list[Call]]:
    """Return the expansion, the retriever and the rerankers of a system."""
    before = stages.pop(0)[0] if _is_expansion(stages[0]) else None
    if before is not None and stages and _is_expansion(stages[0]):
        raise UserError(f"{stages[0][0]} in {spec!r} is a second expansion: a system has one")
    if setup.candidates is not None:
        search: Stage_ = _candidates(setup.candidates, stages, spec)
    elif not stages:
        raise UserError(f"{spec!r} is an expansion: name what searches with it, as in {before}{ARROW}bm25")
    elif rerank.is_reranker(stages[0]):
        raise UserError(
            f"{stages[0][0]} is a reranker: name what finds its candidates, as in bm25{ARROW}{stages[0][0]}, "
            "or give a run with --candidates FILE"
        )
    else:
        _check_first(stages, spec)
        search = retriever("+".join(map(str, stages.pop(0))))
    for stage in stages:
        if len(stage) > 1:
            raise UserError(f"{'+'.join(map(str, stage))} in {spec!r}: rerankers stand one after the other, not fused")
        if _is_expansion(stage):
            raise UserError(f"{stage[0]} in {spec!r} is an expansion: it stands before the retriever")
    return before, search, [stage[0] for stage in stages]


def _candidates(path: Path, stages: list[Stage], spec: str) -> Candidates:
    if not stages or (
        not rerank.is_reranker(stages[0]) and not stages[0][0].name.startswith(tuple(PREFIXES["rerank"]))
    ):
        raise UserError(f"{spec!r}: --candidates {path} is what was retrieved: name the rerankers that follow it only")
    return Candidates.at(path)


def _check_first(stages: list[Stage], spec: str) -> None:
    """Raise for a name that is neither an expansion nor a retriever, where it could have been meant as either."""
    name = stages[0][0].name
    if (
        len(stages) > 1
        and len(stages[0]) == 1
        and name not in names("retrieve")
        and not name.startswith(tuple(PREFIXES["retrieve"]))
    ):
        hint = nearest(name, (*names("expand"), *names("retrieve")))
        raise UserError(f"no expansion or retriever {name!r}{hint} in {spec!r}: {', '.join(names('expand'))} → bm25, …")


def _is_expansion(stage: Stage) -> bool:
    return len(stage) == 1 and stage_table.kind_of(stage[0].name) == "expand"


def _expander(call: Call, search: Stage_, setup: Setup) -> Expander:
    expander: Expander = fed(stage_table.stage(call, "expand"), search).open(setup)
    return expander
