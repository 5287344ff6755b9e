"""The report of a run: systems down, datasets across, the best in bold; then what it took and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from r2med.cli.console import console, plain
from r2med.cli.figures import Figures, labelled
from r2med.core.cost import Cost
from r2med.data.dataset_cards import short_name
from r2med.evaluation.results import (
    MISSING,
    UNKNOWN,
    Results,
    row_cost,
    row_means,
    row_tokens,
    shown_dollars,
    shown_latency,
    shown_score,
)
from r2med.records.approximate_searches import approximate_searches
from r2med.records.record import Record, declared_stages
from r2med.text.terminal_text import printable

FAILED = {
    "expand": ("query", "queries", "got no generated text, searched without one"),
    "rerank": ("call", "calls", "failed, the order left as it was"),
}

BM25_CAPTION = "bm25: the benchmark's published scorer; Lucene's, which most others use, is bm25(scorer=lucene)."
TIME_CAPTION = (
    "p50 s, p95 s: seconds within which half and 95 % of queries are answered, on the slowest of the datasets."
)
PRICE_CAPTION = "dollars: unknown where an LLM has no card with a price, ≥ where that is so for some of the calls."
RECORDED_CAPTION = "unknown: texts that were recorded do not say what writing them took."
OFFLINE_CAPTION = "offline: no text left this machine."
DEMO_CAPTION = (
    "The demo is small and written to show one thing: the words of a clinical question mislead, and a text that "
    "reasons first (here a hand-written one, no model's) finds the evidence. Its figures mean nothing beyond that."
)


def run_report(results: Results, measure: str, out: Path, demo: bool) -> None:
    """Print the scores of a run, its averages, what it took, what failed, and where the records are."""
    output = console()
    output.print()
    if results.records:
        _print_scores(output, results, measure)
        output.print()
    for line in approximate_searches(results.records):
        output.print(plain(f"≈ {line}."), soft_wrap=True)
    for line in failure_lines(results.records):
        output.print(plain(line, "yellow"), soft_wrap=True)
    for line in _unranked(results.records):
        output.print(plain(line, "yellow"), soft_wrap=True)
    for line in _errors(results):
        output.print(plain(line, "red"), soft_wrap=True)
    if results.records:
        reused = sum(cell.reused for cell in results)
        again = f", {reused} of them reused (--fresh redoes)" if reused else ""
        # Not wrapped: a path that is broken over two lines cannot be copied.
        line = f"{_count(len(results.records), 'record')} with per-query scores and runs in {out}/{again}."
        output.print(plain(line), soft_wrap=True)
    if demo:
        output.print(plain(DEMO_CAPTION))
        output.print(plain("Next, the real benchmark (extra: hub): r2med run bm25 --data R2MED"))


def _print_scores(output: Console, results: Results, measure: str) -> None:
    """Print the tables, and below them what a reader has to know about their words."""
    means = [row_means(row, measure) for row in results.rows]
    tables = [_scores(results, measure, means)]
    tasks = list(dict.fromkeys(label for mean in means for label in mean if label != "average"))
    if tasks:
        tables.append(_figures("average by task", tasks, [[mean.get(task) for task in tasks] for mean in means]))
    costs = [row_cost(row) for row in results.rows]
    tables.append(_costs(results, costs))
    # Printable first: how long a name is depends on it.
    names = [printable(row[0].system) for row in results.rows]
    names, legend = labelled(names, tables[0].room(names, output.width))
    output.print(plain(f"{measure} × 100", "bold"), plain(_sizes(results), "dim"))
    for line in legend:
        output.print(plain(line))
    for number, table in enumerate(tables):
        if number:
            output.print()
        table.print(output, names)
    for caption in _captions(results.records, costs):
        output.print(plain(caption, "dim"))


def _scores(results: Results, measure: str, means: Sequence[Mapping[str, float]]) -> Figures:
    heads = [printable(short_name(cell.dataset)) for cell in results.rows[0]]
    rows = [[cell.record.mean[measure] if cell.record else None for cell in row] for row in results.rows]
    if len(heads) > 1:
        heads.append("Avg")
        rows = [[*row, mean.get("average")] for row, mean in zip(rows, means, strict=True)]
    return _figures("system", heads, rows)


def _figures(corner: str, heads: Sequence[str], rows: Sequence[Sequence[float | None]]) -> Figures:
    """Return a table of scores × 100, the best of each column in bold."""
    best = [max((value for value in column if value is not None), default=None) for column in zip(*rows, strict=True)]

    def shown(value: float | None, top: float | None) -> Text:
        if value is None:
            return plain(MISSING, "dim")
        return plain(shown_score(value), "bold" if value == top and len(rows) > 1 else "")

    return Figures(corner, heads, [list(map(shown, row, best)) for row in rows])


def _costs(results: Results, costs: Sequence[Cost]) -> Figures:
    """Return what each system took over all datasets: quality has its price, and it belongs beside it."""
    rows = []
    for row, cost in zip(results.rows, costs, strict=True):
        records = [cell.record for cell in row if cell.record]
        figures = (
            UNKNOWN if (tokens := row_tokens(row)) is None else f"{tokens:,}",
            shown_dollars(cost),
            f"{cost.encoder_seconds:.1f}",
            shown_latency(row, 0.5),
            shown_latency(row, 0.95),
            f"{sum(record.failures + record.unordered for record in records):,}",
        )
        rows.append(list(map(plain, figures)))
    return Figures("what it took", ("LLM tokens", "dollars", "encoder s", "p50 s", "p95 s", "failed"), rows)


def _captions(records: Sequence[Record], costs: Sequence[Cost]) -> Iterator[str]:
    if any(
        stage.get("stage") == "bm25" and stage.get("scorer") == "published"
        for record in records
        for stage in declared_stages(record.settings)
    ):
        yield BM25_CAPTION
    yield TIME_CAPTION
    if any(cost.unpriced for cost in costs):
        yield PRICE_CAPTION
    if not all(record.cost_is_known for record in records):
        yield RECORDED_CAPTION
    if all(record.offline for record in records):
        yield OFFLINE_CAPTION


def failure_lines(records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each stage that had failures, over all datasets; a stage that systems share counts once."""
    failures: dict[tuple[str, str, str], tuple[int, str]] = {}
    for record in records:
        before = ""
        for stage in record.stages:
            before += f" {stage.name}"  # what a reranker saw depends on all before it
            if stage.failures:
                failures[record.dataset.name, before, stage.name] = (stage.failures, stage.stage)
    totals: Counter[tuple[str, str]] = Counter()
    for (_, _, name), (number, kind) in failures.items():
        totals[name, kind] += number
    for (name, kind), number in totals.items():
        one, many, outcome = FAILED[kind]
        yield f"{name}: {_count(number, one, many)} {outcome}. The same command asks again for only these."


def _unranked(records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each system whose rerankers left passages out."""
    totals: Counter[str] = Counter()
    for record in records:
        totals[record.system] += record.unranked
    for system, number in (+totals).items():
        yield f"{system}: {_count(number, 'passage', 'passages')} shown to the reranker and not ranked."


def _errors(results: Results) -> Iterator[str]:
    """Yield a line for each distinct error: a model that is not here is missing in many systems on many datasets."""
    for error, cells in results.errors.items():
        systems = list(dict.fromkeys(cell.system for cell in cells))
        datasets = list(dict.fromkeys(cell.dataset for cell in cells))
        system = systems[0] if len(systems) == 1 else f"{len(systems)} systems, such as {systems[0]}"
        dataset = datasets[0] if len(datasets) == 1 else _count(len(datasets), "dataset")
        yield f"not evaluated: {system}, on {dataset}: {error}"


def _sizes(results: Results) -> str:
    complete = next((row for row in results.rows if all(cell.record for cell in row)), results.rows[0])
    facts = [cell.record.dataset for cell in complete if cell.record]
    queries = sum(dataset.judged_queries for dataset in facts)
    documents = sum(dataset.documents for dataset in facts)
    sizes = _count(len(facts), "dataset"), _count(queries, "query", "queries"), _count(documents, "document")
    return f"· {', '.join(sizes)}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
