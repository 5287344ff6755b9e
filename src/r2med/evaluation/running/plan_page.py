"""A plan, and its page: what each system or LLM of a command needs, stage by stage, and examples of the prompts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from r2med.foundation.core.needs import Needs
from r2med.foundation.pages.cells import Column, Value, shown_dollars
from r2med.foundation.pages.page import Bullets, Page, Section, Table, Verbatim
from r2med.foundation.text.plurals import clock_time, counted
from r2med.models.encoders.model_estimates import gpu_speed_up
from r2med.models.llm.chat import ChatRequest

GIGABYTE = 1e9
TOGETHER = "together"
NOTE = (
    "All numbers are estimates from the numbers and mean lengths of queries and documents. At most: every call that "
    "the answers can lead to, each answer as long as it may be. Answers that are kept already are not subtracted: "
    "they cost nothing again. Memory is that of weights in half precision, and a fifth more."
)


@dataclass(frozen=True)
class PlanRow:
    """What one system needs, or one LLM that reads or judges: one entry for each stage."""

    name: str
    needs: tuple[Needs, ...]
    runs: str = ""
    """How often it is run, in words; empty if repeats were not asked for."""


@dataclass(frozen=True)
class Plan:
    """What a command would do."""

    rows: tuple[PlanRow, ...]
    prompts: Mapping[str, ChatRequest] = field(default_factory=dict)
    """Stage -> an example of its requests."""
    notes: tuple[str, ...] = ()
    device: str = "cpu"

    @property
    def stages(self) -> tuple[Needs, ...]:
        """The needs of all distinct stages. The same work of several systems is done once."""
        distinct = {(need.stage, need.candidates_of): need for row in self.rows for need in row.needs}
        return tuple(distinct.values())


def plan_page(plan: Plan) -> Page:
    """Return the page of a plan."""
    notes = [NOTE, *plan.notes]
    if any(need.seconds for need in plan.stages):
        faster = f"; a GPU encodes about {gpu_speed_up():,.0f} times as fast" if plan.device == "cpu" else ""
        notes.append(f"Hours are those of this machine's {plan.device}{faster}.")
    if not any(need.most_calls != 0 for need in plan.stages):
        notes.append("No LLM would be asked.")
    prompts = [Verbatim(f"prompt of {stage}", _prompt(request)) for stage, request in plan.prompts.items()]
    table = Section("What it needs", [_table(plan)], notes=notes)
    return Page("Plan", [Section("What is done", [Bullets(list(_lines(plan)))]), table, Section("", prompts)])


def _lines(plan: Plan) -> Iterator[str]:
    """Yield a line for each stage: its work, and what is missing."""
    for need in plan.stages:
        done = [*_work(need), *filter(None, [need.note])] or ["nothing is left to do"]
        if need.fetch is None or need.fetch:
            done.append(f"weights to download, {'of unknown size' if need.fetch is None else _about(need.fetch)}")
        if need.seconds is None or need.seconds >= 1:
            done.append("time unknown" if need.seconds is None else f"about {clock_time(need.seconds)}")
        if need.missing:
            done.append(f"MISSING: {need.missing}")
        yield f"{need.stage}: {'; '.join(done)}"


def _work(need: Needs) -> Iterator[str]:
    if need.indexed:
        yield f"indexes {counted(need.indexed, 'document')}"
    if need.encoded:
        yield f"encodes {counted(need.encoded, 'document')}"
    if need.stored:
        yield f"{counted(need.stored, 'document')} {'is' if need.stored == 1 else 'are'} in the store"
    if need.pairs:
        yield f"scores {counted(need.pairs, 'pair')} of queries and documents"
    if need.most_calls:
        yield f"asks an LLM {_calls(need.calls, need.most_calls)}"


def _calls(calls: int | None, most: int) -> str:
    """Return a number of calls. It is exact if no answer decides what is asked next and each prompt fits."""
    if calls is None:
        return f"at most {counted(most, 'time')}"
    return counted(calls, "time") if calls == most else f"about {calls:,} times, at most {most:,}"


def _table(plan: Plan) -> Table:
    """Return a row for each system, and one for all: equal stages count once."""
    has_runs = any(row.runs for row in plan.rows)
    columns = (
        Column("system"),
        *([Column("runs")] if has_runs else []),
        *(Column("LLM calls", "integer"), Column("calls at most", "integer"), Column("tokens")),
        *(Column("dollars", "dollars"), Column("dollars at most", "dollars")),
        *(Column("hours", "number", 1), Column("GPU memory"), Column("downloads")),
    )
    rows = [(row.name, *([row.runs] if has_runs else []), *_cells(row.needs)) for row in plan.rows]
    if len(plan.rows) > 1:
        rows.append((TOGETHER, *([""] if has_runs else []), *_cells(plan.stages)))
    return Table(columns, rows)


def _cells(needs: Sequence[Needs]) -> tuple[Value, ...]:
    """Return the cells of some stages. A cell without a number says why."""
    whole = reduce(add, needs, Needs())
    free = all(need.served for need in needs if need.dollars is None or need.most_dollars is None)
    unpriced = "your server's" if free else "unknown"
    tokens = "unknown" if whole.read is None else _tokens(whole)
    return (
        "unknown" if whole.calls is None else whole.calls,
        "unknown" if whole.most_calls is None else whole.most_calls,
        tokens,
        _dollars([need.dollars for need in needs], unpriced),
        _dollars([need.most_dollars for need in needs], unpriced),
        "unknown" if whole.seconds is None else whole.seconds / 3600,
        _memory(needs),
        _sizes(need.fetch for need in needs),
    )


def _tokens(whole: Needs) -> str:
    parts = [f"{whole.read:,} read"] * bool(whole.read) + [f"{whole.written:,} written"] * bool(whole.written)
    return ", ".join(parts) or "none"


def _dollars(prices: Sequence[float | None], unpriced: str) -> Value:
    """Return the sum of known prices, and a word about the others."""
    known = sum(filter(None, prices))
    if None not in prices:
        return known
    return f"{shown_dollars(known)} and {unpriced}" if known else unpriced


def _memory(needs: Sequence[Needs]) -> str:
    """Return the memory of the largest model here, because models run one after the other, and that of servers."""
    here = max((need.memory or 0.0 for need in needs), default=0.0)
    served = [f"{_about(need.served)} at the server" for need in needs if need.served]
    unknown = [f"unknown size of {need.stage}" for need in needs if need.memory is None or need.served is None]
    return "; ".join([*([_about(here)] if here else []), *served, *unknown]) or "none"


def _sizes(sizes: Iterable[float | None]) -> str:
    given = list(sizes)
    whole = sum(filter(None, given))
    return "; ".join([*([_about(whole)] if whole else []), *["unknown"] * (None in given)]) or "none"


def _about(size: float) -> str:
    """Return bytes as gigabytes, in whole ones from ten on."""
    amount = size / GIGABYTE
    return f"about {amount:,.0f} GB" if amount >= 10 else f"about {amount:.1f} GB"


def _prompt(request: ChatRequest) -> str:
    """Return the text of a request."""
    if request.prompt is not None:
        return request.prompt
    return "\n".join(f"[{message.role}]\n{message.content}" for message in request.messages)
