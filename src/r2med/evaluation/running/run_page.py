"""The page of an evaluation: a table of scores with the best in bold, failures and errors; other tables if asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import stdev

from r2med.data.dataset_cards import short_name
from r2med.evaluation.measure.measures import ASPECT_MEASURES, AVERAGE
from r2med.evaluation.records.record import Record, declared_stages
from r2med.evaluation.running.results import (
    ONE_RUN,
    UNKNOWN,
    Results,
    dollars_cell,
    points_cell,
    row_cost,
    row_means,
    row_tokens,
    runs_cell,
    seconds_cell,
)
from r2med.foundation.core.cost import Cost
from r2med.foundation.pages.cells import Column, Marked, Value
from r2med.foundation.pages.page import Content, Page, Paragraph, Section, Table
from r2med.foundation.text.plurals import counted

FAILED = {
    "expand": ("query", "queries", "got no generated text, so the search used the query alone"),
    "retrieve": ("query or call", "queries and calls", "failed inside the search"),
    "rerank": ("call", "calls", "failed and gave no order"),
}

BM25_CAPTION = "bm25: the benchmark's published scorer. Most other tools use Lucene's: bm25(scorer=lucene)."
TIME_CAPTION = "s / query: mean seconds of a query in all stages, on the slowest dataset; without preparing the corpus."
PRICE_CAPTION = "dollars: unknown if the card of an LLM has no price, ≥ if this is true for some of the calls."
RECORDED_CAPTION = "unknown: the cost of recorded texts and of run files is not known."
ASPECT_CAPTION = (
    "aspects: alpha-nDCG rewards documents of new aspects of the answer; A-Recall is the weight of the aspects found."
)
REPEATS_CAPTION = (
    "runs: scores and costs are means over them. SD is how much single runs differ. r2med compare says what is chance."
)
ONE_RUN_CAPTION = "one run: another run would give other scores; repeats (--repeats 5) shows how much they differ."
OFFLINE_CAPTION = "offline: no text left this machine."
DEMO_CAPTION = (
    "The demo was written so that BM25 fails. hyde(qwen-coder) reads recorded texts of a small LLM; "
    "hyde(author) is an upper bound: written by hand by the author of the demo."
)
NEXT_CAPTION = "Next, the real benchmark: r2med run bm25 --data R2MED"


def run_page(results: Results, out: Path, demo: bool, with_all_tables: bool = True) -> Page:
    """Return the page with scores, failures, errors and the folder of the records.

    With all tables it also has averages by task, costs and aspects, with explanations of their terms.
    """
    sections = [_scores(results, with_all_tables)] if results.records else []
    failed = (*failure_lines(results.records), *_unranked(results.records))
    parts = [Paragraph(line, "warning", no_wrap=True) for line in failed]
    parts += [Paragraph(line, "error", no_wrap=True) for line in _errors(results)]
    if results.records:
        reused = sum(cell.reused for cell in results)
        again = f", {reused} of them reused (fresh (--fresh) makes them again)" if reused else ""
        line = f"{counted(len(results.records), 'record')} with per-query scores and runs in {out}/"
        parts.append(Paragraph(f"{line}{again}.", no_wrap=True))
    captions = [DEMO_CAPTION, NEXT_CAPTION] if demo else []
    return Page("Scores of retrieval systems", [*sections, Section("", [*parts, *captions])], kind="run")


def _scores(results: Results, with_all_tables: bool) -> Section:
    """Return the tables of scores, with explanations of their terms below."""
    measure = results.measure
    means = [row_means(row, measure) for row in results.rows]
    runs = [runs_cell(row) for row in results.rows]
    tables, captions = [_score_table(results, means, runs)], []
    if any(len(cell.records) > 1 for cell in results):
        tables.append(_repeat_table(results))
        captions.append(REPEATS_CAPTION)
    if ONE_RUN in runs:
        captions.append(ONE_RUN_CAPTION)
    if all(record.offline for record in results.records):
        captions.append(OFFLINE_CAPTION)
    if with_all_tables:
        more_tables, explanations = _more_tables(results, means)
        tables += more_tables
        captions += explanations
    parts: list[Content] = [*tables, *(Paragraph(caption, "quiet") for caption in captions)]
    if not any(measure in record.mean for record in results.records):
        parts.append(Paragraph(f"No dataset here has the labels that {measure} needs."))
    return Section(f"{measure} × 100", parts, aside=_sizes(results))


def _more_tables(results: Results, means: Sequence[Mapping[str, float]]) -> tuple[list[Table], list[str]]:
    """Return the tables of averages by task, costs and aspects, and explanations of the terms of all tables."""
    tables = []
    others = list(dict.fromkeys(label for mean in means for label in mean if label not in (AVERAGE, *results.averages)))
    if others:
        by_task = [[mean.get(label) for label in others] for mean in means]
        tables.append(_points_table("average by task", others, results.systems, by_task))
    costs = [row_cost(row) for row in results.rows]
    tables.append(_costs(results, costs))
    captions = list(_captions(results.records, costs))
    if by_aspects := list(_aspect_tables(results)):
        tables += by_aspects
        captions.append(ASPECT_CAPTION)
    return tables, captions


def _score_table(results: Results, means: Sequence[Mapping[str, float]], runs: Sequence[str]) -> Table:
    labels = results.averages
    heads = [short_name(name) for name in results.datasets]
    heads += ["Avg" if label == AVERAGE else f"Avg {label}" for label in labels]
    scores = [
        [*(cell.means.get(results.measure) for cell in row), *(mean.get(label) for label in labels)]
        for row, mean in zip(results.rows, means, strict=True)
    ]
    table = _points_table("system", heads, results.systems, scores)
    if not results.shows_runs:
        return table
    rows = [[*cells, words] for cells, words in zip(table.rows, runs, strict=True)]
    return Table([*table.columns, Column("runs")], rows)


def _repeat_table(results: Results) -> Table:
    """Return a table with the score of every run."""
    most = max(len(cell.records) for cell in results)
    rows: list[list[Value]] = []
    for row in results.rows:
        for cell in row:
            scores = [record.mean[results.measure] for record in cell.records if results.measure in record.mean]
            if len(scores) > 1:
                name = cell.system if len(row) == 1 else f"{cell.system} on {short_name(cell.dataset)}"
                shown = [points_cell(score) for score in scores]
                rows.append([name, *shown, *[None] * (most - len(shown)), points_cell(stdev(scores))])
    heads = [*(f"repeat {number}" for number in range(most)), "SD"]
    return Table([Column("each run"), *(Column(head, "score") for head in heads)], rows)


def _aspect_tables(results: Results) -> Iterator[Table]:
    """Yield for each dataset with aspects a table of their measures."""
    for number, first in enumerate(results.rows[0]):
        means = [row[number].means for row in results.rows]
        if any(str(ASPECT_MEASURES[0]) in mean for mean in means):
            names = list(map(str, ASPECT_MEASURES))
            rows = [[mean.get(name) for name in names] for mean in means]
            yield _points_table(f"aspects of {short_name(first.dataset)}", names, results.systems, rows)


def _points_table(
    corner: str,
    heads: Sequence[str],
    systems: Sequence[str],
    rows: Sequence[Sequence[float | None]],
) -> Table:
    """Return a table of scores × 100. The best score of each column is bold."""
    columns_of_values = zip(*rows, strict=True)
    best = [max((value for value in column if value is not None), default=None) for column in columns_of_values]
    cells = [
        [Marked(points_cell(value), bold=value == top and len(rows) > 1) for value, top in zip(row, best, strict=True)]
        for row in rows
    ]
    columns = [Column(corner), *(Column(head, "score") for head in heads)]
    return Table(columns, [[system, *row] for system, row in zip(systems, cells, strict=True)])


def _costs(results: Results, costs: Sequence[Cost]) -> Table:
    """Return the cost of each system over all datasets."""
    rows: list[list[Value]] = []
    for row, cost in zip(results.rows, costs, strict=True):
        tokens = row_tokens(row)
        failed = sum(record.failures + record.unordered for cell in row for record in cell.records)
        known = UNKNOWN if tokens is None else tokens
        rows.append([row[0].system, known, dollars_cell(cost), cost.encoder_seconds, seconds_cell(row), failed])
    columns = (
        Column("cost"),
        Column("LLM tokens", "integer"),
        Column("dollars", "dollars"),
        Column("encoder s", "number", 1),
        Column("s / query", "seconds"),
        Column("failed", "integer"),
    )
    return Table(columns, rows)


def _captions(records: Sequence[Record], costs: Sequence[Cost]) -> Iterator[str]:
    if any(
        stage.get("stage") == "bm25" and stage.get("scorer", "published") == "published"
        for record in records
        for stage in declared_stages(record.settings)
    ):
        yield BM25_CAPTION
    yield TIME_CAPTION
    prompts = {stage.name: stage.prompt for record in records for stage in record.stages if stage.prompt}
    yield from (f"{name}: {prompt}." for name, prompt in prompts.items())
    if any(cost.unpriced for cost in costs):
        yield PRICE_CAPTION
    if not all(record.cost_is_known for record in records):
        yield RECORDED_CAPTION


def failure_lines(records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each stage with failures, over all datasets. A stage that several systems share counts once."""
    failures: dict[tuple[str, str, str], tuple[int, str]] = {}
    for record in records:
        before = ""
        for stage in record.stages:
            before += f" {stage.name}"  # the input of a reranker depends on all earlier stages
            if stage.failures:
                failures[record.dataset.name, before, stage.name] = (stage.failures, stage.stage)
    totals: Counter[tuple[str, str]] = Counter()
    for (_, _, name), (number, kind) in failures.items():
        totals[name, kind] += number
    for (name, kind), number in totals.items():
        one, many, outcome = FAILED[kind]
        yield f"{name}: {counted(number, one, many)} {outcome}. Run the same command to repeat only these."


def _unranked(records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each system whose rerankers left passages out."""
    totals: Counter[str] = Counter()
    for record in records:
        totals[record.display_name] += record.unranked
    for system, number in (+totals).items():
        yield f"{system}: {counted(number, 'passage', 'passages')} shown to the reranker but not ranked."


def _errors(results: Results) -> Iterator[str]:
    """Yield a line for each distinct error. A missing model, for example, fails in many systems on many datasets."""
    for error, cells in results.errors.items():
        systems = list(dict.fromkeys(cell.system for cell in cells))
        datasets = list(dict.fromkeys(cell.dataset for cell in cells))
        system = systems[0] if len(systems) == 1 else f"{len(systems)} systems, such as {systems[0]}"
        dataset = datasets[0] if len(datasets) == 1 else counted(len(datasets), "dataset")
        yield f"not evaluated: {system}, on {dataset}: {error}"


def _sizes(results: Results) -> str:
    complete = next((row for row in results.rows if all(cell.record for cell in row)), results.rows[0])
    facts = [cell.record.dataset for cell in complete if cell.record]
    queries = sum(dataset.judged_queries for dataset in facts)
    documents = sum(dataset.documents for dataset in facts)
    sizes = counted(len(facts), "dataset"), counted(queries, "query", "queries"), counted(documents, "document")
    return f"· {', '.join(sizes)}"
