"""Why is a benchmark hard? Compare scores by terminology, sparsity, knowledge, reasoning and reviewers' judgement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.analysis.overlap import judged_queries
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.measure.intervals import group_difference_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.answer_views import MAIN_MEASURE
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_stages
from r2med.foundation.pages.cells import Column, Estimate, Value, signed
from r2med.foundation.pages.page import Dots, Section, Table
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.synonyms import Synonyms, normal_term

Marks = npt.NDArray[np.bool_]

NO_TABLE = (
    "Terminology is left out: r2med analyse difficulty --synonyms FILE compares concepts by a table of "
    "synonyms: a CSV file with the columns concept and term."
)
NO_ANSWERS = (
    "Knowledge is left out: it needs records of open answers without passages, as by r2med answer --reader LLM "
    "--judge LLM --form open --condition 'closed book' --data NAME."
)
NO_REVIEWS = (
    "Reviewers' judgement is left out: no query says if it needs inference. r2med review serve asks reviewers about "
    "questions, and the published query.jsonl then has the field needs_inference."
)
NO_TEXTS = (
    "Reasoning is left out: it needs records of a system with and without generated texts, as by r2med run bm25 "
    "'hyde(LLM) → bm25' --data NAME."
)
BY_HAND = "author is not an LLM. Its texts for the demo were written by hand, by a person who knew the documents."
SPARSITY = ("1 relevant document", "2 relevant documents", "3 or 4 relevant documents", "5 or more documents")


@dataclass(frozen=True)
class ScoredQueries:
    """The queries of all datasets that have a relevant document, and the points of each system."""

    queries: Sequence[tuple[Dataset, Query]]
    systems: Sequence[str]
    points: Floats
    """Systems × queries; NaN if a system was not run."""
    best: int = 0
    """Index of the system whose scores are compared."""

    @property
    def has_scores(self) -> bool:
        """True if there is a score of the compared system."""
        return bool(len(self.systems)) and not bool(np.isnan(self.points[self.best]).all())

    @property
    def compared(self) -> Floats:
        """The points of the compared system; NaN without one."""
        return self.points[self.best] if len(self.systems) else np.full(len(self.queries), np.nan)


@dataclass(frozen=True)
class Property:
    """A property of queries: the slice that is expected to be harder, and the slice that it is compared with."""

    name: str
    hard: str
    easy: str
    is_hard: Marks
    is_easy: Marks
    finding: str
    """What the property says about the dataset, in plain sentences."""


def difficulty(material: Material) -> Section:
    """Return how scores differ by properties of queries that may make them hard."""
    scored, notes = scored_queries(material)
    if not scored.queries:
        raise UserError("difficulty needs queries with a relevant document: check the data with r2med data check NAME")
    texts = [list(relevant_texts(dataset, query)) for dataset, query in scored.queries]
    properties: list[Property] = [*_sparsity(texts)]
    if material.synonyms is None:
        notes.append(NO_TABLE)
    else:
        properties.insert(0, _terminology(Synonyms.read(material.synonyms), material.synonyms.name, scored, texts))
    for found, missing in ((list(_knowledge(material, scored)), NO_ANSWERS), (list(_inference(scored)), NO_REVIEWS)):
        properties += found
        notes += [] if found else [missing]
    rows = [row for each in properties if (row := _row(each, scored))]
    findings = [each.finding for each in properties]
    if gain := _best_text(material, scored):
        rows.append(gain.row)
        findings.append(gain.finding)
        if gain.llm == "author":
            notes.append(BY_HAND)
    else:
        notes.append(NO_TEXTS)
    table = _table(rows, scored, material.measure)
    return Section("Difficulty", [table, *findings], _lead(rows, scored), notes, name="difficulty")


def scored_queries(material: Material) -> tuple[ScoredQueries, list[str]]:
    """Return the judged queries with the points of all systems, and notes. Without records there are no points."""
    try:
        collection, datasets = material.collection, material.recorded
    except UserError as error:
        queries = [(dataset, query) for dataset in material.datasets.values() for query in judged_queries(dataset)]
        note = f"Scores are left out: {error}."
        return ScoredQueries(queries, (), np.zeros((0, len(queries)))), [note]
    values = collection.values(material.measure)
    queries = [(dataset, query) for dataset in datasets.values() for query in judged_queries(dataset)]
    points = np.full((len(collection.systems), len(queries)), np.nan)
    places = {name: {query: n for n, query in enumerate(ids)} for name, (ids, _) in values.items()}
    for number, (dataset, query) in enumerate(queries):
        place = places[dataset.name].get(query.id)
        if place is not None:
            points[:, number] = 100 * values[dataset.name][1][:, place]
    gone = [name for name in collection.datasets if name not in datasets]
    notes = [f"{name} is left out: its texts are not on this machine, or have changed." for name in gone]
    return ScoredQueries(queries, collection.systems, points, _compared_system(collection, points)), notes


def _compared_system(collection: RecordCollection, points: Floats) -> int:
    """Return the index of the best system without an expansion, or of the best system if all have one.

    A generated text changes what is hard, and it has a row of its own.
    """
    with_texts = expanded_systems(collection)
    means = [
        (system not in with_texts, float(np.nan_to_num(row, nan=0.0).mean()) if row.size else 0.0)
        for system, row in zip(collection.systems, points, strict=True)
    ]
    return max(range(len(means)), key=means.__getitem__)


def relevant_texts(dataset: Dataset, query: Query) -> Iterable[str]:
    """Return the texts of a query's relevant documents in the corpus."""
    wanted = [document for document, grade in dataset.qrels[query.id].items() if grade > 0]
    rows = dataset.corpus.rows(wanted)
    return dataset.corpus.texts(rows[rows >= 0].tolist())


def _terminology(synonyms: Synonyms, table: str, scored: ScoredQueries, texts: Sequence[Sequence[str]]) -> Property:
    pairs = zip(scored.queries, texts, strict=True)
    other, absent = np.array([concept_shares(synonyms, query.text, each) for (_, query), each in pairs]).T
    means = mean_interval(other), mean_interval(absent)
    if means[0] is None or means[1] is None:
        finding = f"Terminology: no query has a concept of {table}."
    else:
        finding = (
            f"Terminology: on average, {_percent(means[0])} of the concepts of a query are in its relevant documents "
            f"only under other words, and {_percent(means[1])} are not in them at all "
            f"({counted(int((~np.isnan(other)).sum()), 'query', 'queries')} with a concept of {table})."
        )
    finding += "".join(f" {note}." for note in synonyms.notes)
    return Property("terminology", "a concept in other words", "no such concept", other > 0, other == 0, finding)


def concept_shares(synonyms: Synonyms, query: str, documents: Iterable[str]) -> tuple[float, float]:
    """Return the share of a query's concepts that its relevant documents write only in other words, and of absent ones.

    Both are NaN if the query has no concept.
    """
    asked = _forms(synonyms, query)
    if not asked:
        return np.nan, np.nan
    written: dict[str, set[str]] = {}
    for document in documents:
        for concept, forms in _forms(synonyms, document).items():
            written.setdefault(concept, set()).update(forms)
    same = sum(bool(forms & written.get(concept, set())) for concept, forms in asked.items())
    absent = sum(concept not in written for concept in asked)
    return (len(asked) - same - absent) / len(asked), absent / len(asked)


def _forms(synonyms: Synonyms, text: str) -> dict[str, set[str]]:
    """Return the concepts of a text with their terms in normal form, so that a plural is not another word."""
    return {concept: set(map(normal_term, terms)) for concept, terms in synonyms.concepts(text).items()}


def _sparsity(texts: Sequence[Sequence[str]]) -> Iterator[Property]:
    """Yield the number of relevant documents, and thirds of the queries by the mean length of these."""
    counts = np.array([len(each) for each in texts])
    known = counts[counts > 0]
    if not len(known):
        return
    levels = np.where(counts > 0, np.searchsorted([1, 2, 4], counts), -1)
    fewest, most = int(levels[levels >= 0].min()), int(levels.max())
    finding = (
        f"Sparsity: {float((known == 1).mean()):.0%} of {counted(len(known), 'query', 'queries')} have only one "
        f"relevant document; the mean is {known.mean():.1f}."
    )
    several = (levels == most) & (most > fewest)
    yield Property("relevant documents", SPARSITY[fewest], SPARSITY[most], levels == fewest, several, finding)
    words = np.array([np.mean([len(text.split()) for text in each]) if each else np.nan for each in texts])
    low, high = (round(float(bound)) for bound in np.quantile(words[counts > 0], [1 / 3, 2 / 3]))
    finding = f"Length: relevant documents have {np.nanmedian(words):,.0f} words (median of the means of queries)."
    sides = np.ceil(words) <= low, np.ceil(words) > high
    yield Property("document length", f"up to {low:,} words", f"over {high:,} words", *sides, finding)


def _knowledge(material: Material, scored: ScoredQueries) -> Iterator[Property]:
    """Yield for each LLM the questions that it answers wrong and right without passages, by its answer records."""
    try:
        runs = collect((), material.results, kind="answers").runs_of_all
    except UserError:
        return
    kept = [each.record for each in runs if each.record.answers.form == "open"]
    for reader in dict.fromkeys(record.answers.reader for record in kept):
        known = {
            (record.dataset.fingerprint, query): values[MAIN_MEASURE]
            for record in kept
            if record.answers.reader == reader
            for query, values in record.answers.per_query.get("closed book", {}).items()
            if MAIN_MEASURE in values
        }
        right = np.array([known.get((dataset.fingerprint, query.id), np.nan) for dataset, query in scored.queries])
        if (share := mean_interval(right)) is not None:
            answered = counted(int((~np.isnan(right)).sum()), "question")
            finding = f"Knowledge: without any passage, {reader} answers {_percent(share)} of {answered} right."
            sides = f"{reader} answers wrong", f"{reader} answers right"
            yield Property("knowledge", *sides, right == 0, right > 0, finding)


def _inference(scored: ScoredQueries) -> Iterator[Property]:
    said = np.array([query.needs_inference for _, query in scored.queries])
    reviewed = np.isin(said, ("yes", "no", "unsure"))
    if reviewed.any():
        share = mean_interval((said[reviewed] == "yes").astype(np.float64))
        finding = (
            f"Reviewers: {_percent(share)} of {counted(int(reviewed.sum()), 'reviewed query', 'reviewed queries')} "
            "need inference."
        )
        yield Property("inference", "needs inference", "needs no inference", said == "yes", said == "no", finding)


@dataclass(frozen=True)
class TextGain:
    """What the generated texts of one system add to the scores of its retriever."""

    llm: str
    row: list[Value]
    finding: str


def expanded_systems(collection: RecordCollection) -> dict[str, tuple[str, str, str]]:
    """Return the systems that expand queries with an LLM: name -> (the system without it, the method, the LLM)."""
    found = {}
    for kept in collection:
        expansion = kept.record.settings.get("expand") or {}
        if llm := expansion.get("llm"):
            plain = joined_stages([stage.name for stage in kept.record.stages if stage.stage != "expand"])
            found[kept.record.system] = plain, str(expansion["stage"]), str(llm)
    return found


def _best_text(material: Material, scored: ScoredQueries) -> TextGain | None:
    """Return the expansion that adds most, on the queries that were run with and without its text; None without one."""
    if not scored.systems:
        return None
    names = list(scored.systems)
    known = []
    for system, (plain, method, llm) in expanded_systems(material.collection).items():
        if plain in names:
            before, after = scored.points[names.index(plain)], scored.points[names.index(system)]
            both = ~(np.isnan(before) | np.isnan(after))
            if both.any():
                known.append((float((after - before)[both].mean()), system, method, llm, before[both], after[both]))
    if not known:
        return None
    _, system, method, llm, before, after = max(known, key=lambda each: each[0])
    lost, gain = mean_interval(before - after, None), mean_interval(after - before, None)
    row: list[Value] = ["reasoning", "query alone", len(before), mean_interval(before, 100.0)]
    row += [f"with the text of {method}({llm})", len(after), mean_interval(after, 100.0), lost]
    moved = _difference_text(gain) if gain else ""
    finding = (
        f"Reasoning: the text of {system} moves the score from {before.mean():.1f} to {after.mean():.1f}, {moved}. It "
        f"helps {float((after > before).mean()):.0%} of {counted(len(before), 'query', 'queries')} and hurts "
        f"{float((after < before).mean()):.0%}."
    )
    return TextGain(llm, row, finding)


def _row(each: Property, scored: ScoredQueries) -> list[Value] | None:
    """Return both slices with their scores, and the difference; None if there are scores, but none of one slice."""
    sides: list[Value] = []
    parts = []
    for label, marks in ((each.hard, each.is_hard), (each.easy, each.is_easy)):
        known = scored.compared[marks]
        parts.append(known[~np.isnan(known)])
        count = len(parts[-1]) if scored.has_scores else int(marks.sum())
        sides += [label, count, mean_interval(parts[-1], 100.0)]
    difference = group_difference(*parts)
    if scored.has_scores and difference is None:
        return None
    return [each.name, *sides, difference]


def group_difference(first: Floats, second: Floats) -> Estimate | None:
    """Return the difference between the mean points of two groups of queries, with its interval."""
    if not len(first) or not len(second):
        return None
    low, high = group_difference_intervals(first[None], second[None])[:, 0].tolist()
    bounds = (None, None) if np.isnan(low) else (low, high)
    return Estimate(float(first.mean() - second.mean()), *bounds)


def _table(rows: list[list[Value]], scored: ScoredQueries, measure: str) -> Table:
    columns = (
        Column("property"),
        Column("slice"),
        Column("queries", "integer"),
        Column("score", "score", 1),
        Column("other slice"),
        Column("queries of it", "integer"),
        Column("its score", "score", 1),
        Column("difference", "difference", 1),
    )
    of_system = f"Scores of {scored.systems[scored.best]}; for" if scored.has_scores else "For"
    note = (
        f"{measure} × 100. {of_system} reasoning, those of the retriever with and "
        "without the text. Difference: the first slice minus the other one. Queries of all datasets count alike. The "
        "slices are not independent of each other: a property that goes with low scores need not be their cause. "
        "Intervals are not adjusted for the number of properties."
    )
    chart = Dots(
        [(str(row[0]), {"difference": row[-1] if isinstance(row[-1], Estimate) else None}) for row in rows],
        "difference in points",
    )
    return Table(columns, rows, "Properties and scores", note, "difficulty", chart if scored.has_scores else None)


def _lead(rows: Sequence[Sequence[Value]], scored: ScoredQueries) -> str:
    if not scored.has_scores:
        return "There are no scores, so only the properties of the queries are shown."
    known = [(str(row[0]), str(row[1]), row[-1]) for row in rows if isinstance(row[-1], Estimate)]
    clear = [row for row in known if _is_clear(row[2])]
    count = counted(len(rows), "property", "properties")
    if not clear:
        return f"None of {count} goes with clearly different scores of {scored.systems[scored.best]}."
    clear.sort(key=lambda row: -abs(row[2].value))
    named = ", ".join(f"{name} ({label}: {signed(gap.value, 1)} points)" for name, label, gap in clear)
    return f"{len(clear)} of {count} {'goes' if len(clear) == 1 else 'go'} with clearly different scores: {named}."


def _is_clear(difference: Estimate) -> bool:
    return difference.low is not None and difference.high is not None and difference.low * difference.high > 0


def _difference_text(difference: Estimate) -> str:
    """Return a difference in points with its interval as text."""
    known = "too few queries for an interval"
    if difference.low is not None:
        known = f"95 % interval {' to '.join(signed(bound, 1) for bound in difference.bounds)}"
    return f"{signed(difference.value, 1)} points ({known})"


def _percent(share: Estimate | None) -> str:
    return "–" if share is None else f"{share.value:.0%} (95 % interval {share.interval('.0%')})"
