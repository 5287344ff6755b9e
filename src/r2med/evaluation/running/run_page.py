"""The page of an evaluation: a table of scores with the best in bold, failures and errors; other tables if asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import stdev

from r2med.data.dataset_cards import short_name
from r2med.evaluation.measure.measures import ASPECT_MEASURES
from r2med.evaluation.records.record import Record, declared_stages
from r2med.evaluation.running.results import (
    ONE_RUN,
    UNKNOWN,
    Results,
    average,
    averages_by_task,
    points,
    points_table,
    score_table,
)
from r2med.foundation.pages.cells import Column, Value
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
        again = f", {results.reused} of them reused (fresh (--fresh) makes them again)" if results.reused else ""
        line = f"{counted(len(results.records), 'record')} with per-query scores and runs in {out}/"
        parts.append(Paragraph(f"{line}{again}.", no_wrap=True))
    captions = [DEMO_CAPTION, NEXT_CAPTION] if demo else []
    return Page("Scores of retrieval systems", [*sections, Section("", [*parts, *captions])], kind="run")


def _scores(results: Results, with_all_tables: bool) -> Section:
    """Return the tables of scores, with explanations of their terms below."""
    measure = results.measure
    tables, captions = [score_table(results)], []
    if any(len(cell.repeats) > 1 for row in results.rows for cell in row.stored):
        tables.append(_repeat_table(results))
        captions.append(REPEATS_CAPTION)
    if any(row.shown_runs == ONE_RUN for row in results.rows):
        captions.append(ONE_RUN_CAPTION)
    if all(record.offline for record in results.records):
        captions.append(OFFLINE_CAPTION)
    if with_all_tables:
        more_tables, explanations = _more_tables(results)
        tables += more_tables
        captions += explanations
    parts: list[Content] = [*tables, *(Paragraph(caption, "quiet") for caption in captions)]
    if not any(measure in record.mean for record in results.records):
        parts.append(Paragraph(f"No dataset here has the labels that {measure} needs."))
    return Section(f"{measure} × 100", parts, aside=_sizes(results))


def _more_tables(results: Results) -> tuple[list[Table], list[str]]:
    """Return the tables of averages by task, costs and aspects, and explanations of the terms of all tables."""
    tables = []
    if by_task := averages_by_task(results):
        scores = {row.system: row.scores(results.measure) for row in results.rows}
        means = {name: [average(row, columns) for columns in by_task.values()] for name, row in scores.items()}
        tables.append(points_table("average by task", list(by_task), means))
    tables.append(_costs(results))
    captions = list(_captions(results))
    if by_aspects := list(_aspect_tables(results)):
        tables += by_aspects
        captions.append(ASPECT_CAPTION)
    return tables, captions


def _repeat_table(results: Results) -> Table:
    """Return a table with the score of every run."""
    most = max(len(cell.repeats) for row in results.rows for cell in row.stored)
    rows: list[list[Value]] = []
    for row in results.rows:
        for dataset, cell in zip(results.datasets, row.cells, strict=True):
            means = [repeat.record.mean for repeat in cell.repeats] if cell else []
            scores = [mean[results.measure] for mean in means if results.measure in mean]
            if len(scores) > 1:
                name = row.system if len(results.datasets) == 1 else f"{row.system} on {short_name(dataset)}"
                rows.append([name, *map(points, scores), *[None] * (most - len(scores)), points(stdev(scores))])
    heads = [*(f"repeat {number}" for number in range(most)), "SD"]
    return Table([Column("each run"), *(Column(head, "score") for head in heads)], rows)


def _aspect_tables(results: Results) -> Iterator[Table]:
    """Yield for each dataset with aspects a table of their measures."""
    names = list(map(str, ASPECT_MEASURES))
    for number, dataset in enumerate(results.datasets):
        cells = {row.system: row.cells[number] for row in results.rows}
        means = {system: cell.means if cell else {} for system, cell in cells.items()}
        if any(names[0] in mean for mean in means.values()):
            scores = {system: [mean.get(name) for name in names] for system, mean in means.items()}
            yield points_table(f"aspects of {short_name(dataset)}", names, scores)


def _costs(results: Results) -> Table:
    """Return the cost of each system over all datasets."""
    rows: list[list[Value]] = []
    for row in results.rows:
        tokens = UNKNOWN if row.tokens is None else row.tokens
        failed = sum(record.failures + record.unordered for record in row.records)
        rows.append([row.system, tokens, row.shown_dollars, row.cost.encoder_seconds, row.shown_seconds, failed])
    columns = (
        Column("cost"),
        Column("LLM tokens", "integer"),
        Column("dollars", "dollars"),
        Column("encoder s", "number", 1),
        Column("s / query", "seconds"),
        Column("failed", "integer"),
    )
    return Table(columns, rows)


def _captions(results: Results) -> Iterator[str]:
    """Yield explanations of the terms in the tables of scores and costs."""
    records = results.records
    if any(
        stage.get("stage") == "bm25" and stage.get("scorer", "published") == "published"
        for record in records
        for stage in declared_stages(record.settings)
    ):
        yield BM25_CAPTION
    yield TIME_CAPTION
    prompts = {stage.name: stage.prompt for record in records for stage in record.stages if stage.prompt}
    yield from (f"{name}: {prompt}." for name, prompt in prompts.items())
    if any(row.cost.unpriced for row in results.rows):
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
    for error, failed in results.errors.items():
        systems = list(dict.fromkeys(system for system, _ in failed))
        datasets = list(dict.fromkeys(dataset for _, dataset in failed))
        system = systems[0] if len(systems) == 1 else f"{len(systems)} systems, such as {systems[0]}"
        dataset = datasets[0] if len(datasets) == 1 else counted(len(datasets), "dataset")
        yield f"not evaluated: {system}, on {dataset}: {error}"


def _sizes(results: Results) -> str:
    """Return the numbers of datasets, queries and documents of the first row that has the most records."""
    facts = [stored.record.dataset for stored in max((row.stored for row in results.rows), key=len)]
    queries = sum(dataset.judged_queries for dataset in facts)
    documents = sum(dataset.documents for dataset in facts)
    sizes = counted(len(facts), "dataset"), counted(queries, "query", "queries"), counted(documents, "document")
    return f"· {', '.join(sizes)}"
