"""`--plan`: show the stages of a run, what is kept, to download and missing, the LLM calls and three prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import zip_longest
from operator import add
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2med.data import Dataset
    from r2med.evaluation.running.batch import RunPlan
    from r2med.foundation.core.plan import Plan
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.models.llm.chat import ChatRequest
    from r2med.public.call_plan import PlannedCalls
    from r2med.systems.system import System

SHOWN = 3


def show_plan(plan: RunPlan) -> None:
    """Print the stages of each system, a table of their needs, and the LLM calls. Nothing is asked or downloaded.

    Prompts and exact prices are shown if the datasets are on this machine. Otherwise the sizes in their cards are used.
    """
    from r2med.cli.formats import show_page
    from r2med.evaluation.running.plan_table import plan_table
    from r2med.evaluation.running.planning import absent_data, runs_planned, stage_plans, when_prompts_are_shown
    from r2med.foundation.core.errors import MissingExtraError
    from r2med.foundation.pages.page import table_page
    from r2med.models.encoders.devices import devices

    asking = {name: stage for system in plan.systems for name, stage in system.asking.items()}
    absent = absent_data(plan.data, plan.runtime)
    # A system without an expansion and a reranker asks nothing, so no dataset has to be read.
    reads = not absent and not all(system.only_searches for system in plan.systems)
    datasets = plan.datasets() if reads else []
    for system in plan.systems if datasets else ():
        with suppress(MissingExtraError):  # the plan of its stage says what is missing
            system.check(datasets)
    previews = {} if absent else _previews(plan, datasets)
    planned = [
        (system, [_with_calls(each, previews, plan.runs(system)) for each in stages])
        for system, stages in stage_plans(plan)
    ]
    _show_trees(planned, plan)
    print()
    runs = {system.name: runs_planned(plan, system) for system in plan.systems} if plan.repeats > 1 else {}
    table = plan_table(planned, devices(plan.runtime.setup.device)[0], runs)
    show_page(table_page("Plan", table), "text")
    if not asking:
        print("no LLM would be asked")
    elif absent:
        print(when_prompts_are_shown(absent))
    show_previews(previews, plan.runtime)


def _with_calls(stage: Plan, previews: Mapping[str, Plan], runs: int) -> Plan:
    """Return the plan of a stage in all runs of its system. The previews are those of all runs."""
    return stage.with_prompts(previews[stage.name]) if stage.name in previews else stage.times(runs)


def _show_trees(planned: Iterable[tuple[System, Sequence[Plan]]], plan: RunPlan) -> None:
    from r2med.evaluation.running.planning import runs_planned
    from r2med.foundation.text.plurals import counted
    from r2med.foundation.text.terminal_text import printable

    for system, stages in planned:
        runs = f", {runs_planned(plan, system)}" if plan.repeats > 1 else ""
        print(f"{printable(system.name)}  ({counted(len(plan.data), 'dataset')}{runs})")
        for number, stage in enumerate(stages, 1):
            print(printable(f"{'└' if number == len(stages) else '├'}─ {_plan_line(stage)}"))


def _plan_line(stage: Plan) -> str:
    """Return one line of the tree."""
    from r2med.cli.progress import clock_time

    parts = [f"{stage.name}: {stage.work}"]
    if stage.fetch is None or stage.fetch:
        size = "of unknown size" if stage.fetch is None else f"about {stage.fetch / 1e9:.1f} GB"
        parts.append(f"weights to download, {size}")
    if stage.seconds is None:
        parts.append("time unknown")
    elif stage.seconds >= 1:
        parts.append(f"about {clock_time(stage.seconds)}")
    if stage.missing:
        parts.append(f"MISSING: {stage.missing}")
    return "; ".join(parts)


def show_calls(plan: PlannedCalls) -> None:
    """Print calls, tokens, time and cost of each stage, and the first prompts."""
    if not plan.previews:
        print("no LLM would be asked")
    show_previews(plan.previews, plan.runtime)


def _previews(plan: RunPlan, datasets: Sequence[Dataset]) -> dict[str, Plan]:
    """Return what each stage would ask in all runs."""
    from r2med.foundation.core.plan import of_all_runs

    def of_repeat(repeat: int) -> dict[str, Plan]:
        systems = [system.in_repeat(repeat) for system in plan.systems if repeat < plan.runs(system)]
        asking = {name: (stage, system.runtime) for system in systems for name, stage in system.asking.items()}
        return {
            name: reduce(add, [stage.preview(dataset, runtime) for dataset in datasets])
            for name, (stage, runtime) in asking.items()
        }

    return of_all_runs(map(of_repeat, range(max(map(plan.runs, plan.systems)))))


def show_previews(previews: Mapping[str, Plan], runtime: Runtime) -> None:
    """Print the calls, tokens, time and cost of each stage by name, and the first prompts."""
    for name, preview in previews.items():
        _show(name, preview, runtime)
    # Show one prompt of each stage first: three of the first stage would show nothing of the others.
    first = [preview.requests[:SHOWN] for preview in previews.values()]
    shown = [request for together in zip_longest(*first) for request in together if request is not None]
    _show_prompts(shown[:SHOWN])


def _show(name: str, plan: Plan, runtime: Runtime) -> None:
    from r2med.cli.progress import clock_time
    from r2med.foundation.pages.cells import shown_dollars
    from r2med.foundation.text.plurals import counted
    from r2med.foundation.text.terminal_text import printable
    from r2med.models.llm.call_plans import asking_seconds

    if plan.calls is None:
        print(f"{printable(name)}: the number of calls is not known\n  {plan.note}")
        return
    print(f"{printable(name)}: {counted(plan.calls, 'call')}, {plan.answered:,} answered already")
    print(f"  {plan.prompt_tokens:,} prompt tokens and about {plan.completion_tokens:,} completion tokens")
    if plan.dollars is None or plan.dollars_at_most is None:
        print("  what it costs is not known: it has no card with a price")
    else:
        print(f"  about ${shown_dollars(plan.dollars)}, at most ${shown_dollars(plan.dollars_at_most)}")
    if plan.llm:
        seconds, known = asking_seconds(plan.llm, plan, runtime)
        source = f"from {counted(known, 'earlier answer')}" if known else "a guess: it has answered nothing yet"
        print(f"  about {clock_time(seconds)} ({source})")
    if plan.note:
        print(f"  {plan.note}")
    if most := plan.conversation_calls:
        price = "" if plan.dollars is None else f" and ${shown_dollars(plan.conversation_dollars)}"
        print(f"  at most {counted(most, 'call')}{price} for whole conversations")
    if plan.llm and (plan.cut or plan.unfit):
        room = f"{plan.llm.context_length:,} tokens, {plan.unfit:,} would not fit at all and not be asked"
        print(f"  {plan.cut:,} prompts would be cut to fit {room}")


def _show_prompts(requests: Iterable[ChatRequest]) -> None:
    from r2med.foundation.text.terminal_text import printable

    for number, request in enumerate(requests, 1):
        messages = "\n".join(f"[{message.role}]\n{message.content}" for message in request.messages)
        text = messages if request.prompt is None else request.prompt
        print(f"\n--- prompt {number} ---")
        print("\n".join(map(printable, text.split("\n"))))
