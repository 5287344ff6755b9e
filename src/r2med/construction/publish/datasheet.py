"""The datasheet of a benchmark: its sources and steps, its content, and how far its labels can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from r2med.analysis.overlap import RELEVANT, dataset_overlap
from r2med.analysis.overlap_report import coverage_table, reference_note
from r2med.assessment.review.review_outcomes import counted_reasons
from r2med.construction.diagnosis_groups import GROUPS_FACT
from r2med.construction.publish.build_outcome import BuildOutcome
from r2med.construction.publish.label_trust import LABEL_NAMES, trust_facts, trust_sections
from r2med.construction.publish.reviewers import reviewers
from r2med.construction.steps.pool_contributions import Contribution, contributions
from r2med.data.check import repeated_queries
from r2med.data.dataset import Dataset
from r2med.data.publishing.croissant import NOT_STATED
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.core.version import __version__
from r2med.foundation.pages.page import Bullets, Content, Page, Section, Table, Verbatim
from r2med.foundation.store import Store
from r2med.foundation.text.plurals import counted

MAX_SHOWN_SOURCES = 30
"""Number of sources, or of repeated queries, that are listed one by one."""
MAX_BINS = 7
"""Maximum number of bars in a histogram, approximately."""


QUERY_ORIGINS = {
    "read-stackexchange": "Queries are posts of a forum, chosen by their answers and links, not by diagnoses.",
    "read-exam": "Queries are exam questions. They were not chosen by diagnoses.",
    "read-table": "Queries are rows of a table. Only its makers know if they were chosen by diagnoses.",
    "read-cases": "Queries are case reports. They were not chosen by diagnoses.",
}
"""Step that reads questions -> where its queries come from."""
FROM_DIAGNOSES = "Queries start from diagnoses: they are case reports, one for each diagnosis that several cases share."

GENERAL_LIMITS = (
    "Only candidates that a retriever of the committee proposed were judged. All other documents count as not "
    "relevant, which favours systems like those of the committee.",
    "Labels come from LLM judges, corrected where people reviewed them. Errors of the judges affect every score.",
    "Scores compare retrieval systems. They do not say whether advice based on these documents is safe.",
)


def datasheet(made: BuildOutcome, dataset: Dataset, files: Mapping[str, str], store: Store) -> Page:
    """Return the datasheet of a build. `files` maps each file of the dataset to its SHA-256."""
    plan = made.plan
    sections = [
        Section("How it was made", list(_making(made))),
        Section("Sources and licences", [_sources(made)]),
        Section("Candidates", list(_pool(made))),
        Section("Labels", list(_labels(made))),
        *trust_sections(made),
        *(
            [Section("Who reviewed", list(reviewers(plan.reviewers, made.guideline, made.reviews)))]
            if made.reviews
            else []
        ),
        Section("What is in it", list(_contents(made, dataset))),
        Section("Words that queries share with their documents", list(_overlap(dataset, store))),
        Section("Models and prompts", list(_models(made))),
        Section("Known limits and use", list(_limits(made))),
        Section("Files", [Table.of(("file", "SHA-256"), list(files.items()), "SHA-256 of each file")]),
    ]
    foot = f"Written by r2med {__version__} from the build’s own records."
    facts = list(_facts(made, dataset))
    return Page(plan.title or plan.name, sections, plan.description, facts, foot, kind="datasheet")


def _facts(made: BuildOutcome, dataset: Dataset) -> Iterator[tuple[str, str, str]]:
    positives, queries = dataset.qrels.positives, len(dataset.queries)
    yield (
        "Queries",
        f"{queries:,}",
        f"of {queries + len(made.left_over) + len(made.refused):,} questions that were judged",
    )
    yield "Documents", f"{len(dataset.corpus):,}", ""
    yield "Relevant documents", f"{positives:,}", f"{positives / queries:.1f} per query"
    yield from trust_facts(made)
    note = "a person wrote the answers; no model was asked" if any(judge.scripted for judge in made.judges) else ""
    yield "Judged by", ", ".join(sorted({judge.model for judge in made.judges})) or "people", note
    if made.judge_trust:
        said, _, counts = made.judge_trust.removeprefix("judge ").partition(": ")
        yield "Judge", said, counts


# How it was made.


def query_origins(steps: Iterable[str]) -> list[str]:
    """Return a sentence for each kind of source that queries come from."""
    calls = [parse_stage(step)[0] for step in steps]
    known = [
        FROM_DIAGNOSES
        if call.name == "read-cases" and dict(call.settings).get("group", "diagnosis") == "diagnosis"
        else QUERY_ORIGINS.get(call.name, "")
        for call in calls
    ]
    return [text for text in dict.fromkeys(known) if text]


def _making(made: BuildOutcome) -> Iterator[Content]:
    yield from query_origins(done.step for done in made.steps)
    if made.plan.query_origin:
        yield f"How the queries were written: {made.plan.query_origin}"
    rows: list[tuple[str, str, int, int, str, int]] = []
    for done in made.steps:
        reasons = [*done.rejected.items(), *((f"failed: {kind}", count) for kind, count in done.failures.items())]
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons, key=lambda pair: -pair[1]))
        calls = done.cost.calls
        rows.append((done.step, done.stream, done.kept, sum(done.rejected.values()), why, calls))
    rest = len(made.left_over)
    if made.refused:
        why = counted_reasons(made.refused)
        rows.append(("review", "questions", len(made.questions) + rest, len(made.refused), why, 0))
    if made.refused_pages:
        pages = sum(1 for _ in made.streams.pages()) - len(made.refused_pages)
        why = counted_reasons(made.refused_pages)
        rows.append(("review", "pages", pages, len(made.refused_pages), why, 0))
    if rest:
        rows.append(("labels", "questions", len(made.questions), rest, f"{rest:,} no positive", 0))
    yield Table.of(
        ("step", "of", "kept", "left out", "why", "LLM calls"),
        rows,
        "Items kept and left out by every step (rejected.jsonl lists what was left out)",
    )
    if made.translations:
        yield from _translation(made)
    yield from _corrections(made)
    yield from _personal_data(made)
    after = [(parse_stage(step)[0].name, kept) for step, stream, kept, *_ in rows if stream == "questions"]
    yield Table.of_counts("Questions after each step", after)
    for done in made.steps:
        if GROUPS_FACT in done.facts:
            yield grouping_table(done.facts[GROUPS_FACT])


def grouping_table(groups: Iterable[Sequence[str]]) -> Table:
    """Return how many diagnoses were grouped in each way, by the list of groups of a build."""
    counts = Counter(by for _, _, by in groups)
    rows = [("the table of synonyms has them", counts["table"]), ("they differ in spelling only", counts["string"])]
    return Table.of(("grouped because", "diagnoses"), rows, "Diagnoses that mean the same")


def _translation(made: BuildOutcome) -> Iterator[Content]:
    """Yield what was translated, and how many sentences were marked."""
    rows = []
    for step, facts in made.translations:
        marks = ", ".join(f"{count:,} {mark}" for mark, count in facts["marks"].items())
        similarity = "not compared" if facts["similarity"] is None else f"{facts['similarity']:.0f}"
        counts = (facts["items"], facts["marked"], facts["sentences"], similarity, marks or "none")
        rows.append((step, f"{facts['from']} into {facts['to']}", *counts))
    yield (
        "An LLM translated the text sentence by sentence, and back. Numbers and negations that changed on the way are "
        "marked for people. Nothing was left out because of a mark, and a sentence without one is not proved right. "
        "translations.jsonl has each sentence beside its source and the translation back."
    )
    heads = ("step", "languages", "items", "items with marks", "sentences", "mean chrF (0 to 100)", "marks")
    yield Table.of(heads, rows, "Translations")


def _corrections(made: BuildOutcome) -> Iterator[Content]:
    """Yield how many texts people corrected."""
    if made.corrections:
        kinds = Counter(each.kind for each in made.corrections)
        each = ", ".join(f"{count:,} by the review of kind {kind}" for kind, count in kinds.items())
        texts = counted(len(made.corrections), "text")
        yield f"People corrected {texts} of queries ({each}). corrections.jsonl has each text before and after."
    if made.open_corrections:
        proposed = counted(made.open_corrections, "text")
        yield f"People did not decide about corrections of {proposed}, which stay as they are (r2med review serve DIR)."


def _personal_data(made: BuildOutcome) -> Iterator[Content]:
    """Yield which steps looked for personal data, in how many texts, and what they did not look for."""
    facts = [(done.step, done.facts["personal data"]) for done in made.steps if "personal data" in done.facts]
    rows = [(step, fact["items"], ", ".join(fact["not looked for"]) or "nothing") for step, fact in facts]
    if rows:
        yield Table.of(("step", "texts", "not looked for"), rows, "Steps that looked for personal data")


def _sources(made: BuildOutcome) -> Table:
    rows = [
        (kind, source or NOT_STATED, licence or NOT_STATED, count)
        for (kind, source, licence), count in made.sources.most_common()
    ]
    if rest := rows[MAX_SHOWN_SOURCES:]:
        more = (f"{len(rest)} more", "", "see provenance.jsonl", sum(row[3] for row in rest))
        rows = [*rows[:MAX_SHOWN_SOURCES], more]
    return Table.of(("items", "source", "licence", "number"), rows, "Sources of queries and documents")


def _pool(made: BuildOutcome) -> Iterator[Content]:
    """Yield which systems proposed the candidates and the relevant ones."""
    positive = {(query, chunk) for query, chunks in made.positives.items() for chunk in chunks}
    kept = [each for each in made.candidates() if (each.question, each.chunk) in positive]
    rows = []
    among = contributions(kept)
    for kind, by_name in contributions(made.candidates()).items():
        for name, each in by_name.items():
            found = among[kind].get(name, Contribution(0, 0))
            rows.append((name, kind.removesuffix("s"), each.proposed, each.alone, found.proposed, found.alone))
    heads = ("proposed by", "of", "candidates", "only here", "positives", "only here")
    yield Table.of(heads, rows, "Candidates by member and view, and those that only one of them proposed")


# Labels.


def _labels(made: BuildOutcome) -> Iterator[Content]:
    rule = made.plan.labels
    yield (
        "Judges score each candidate from 0 to 5 for answer relevance and for reasoning support. A candidate is "
        f"positive if both mean scores are at least {rule.positive:g}. It is discarded, which counts as not judged, if "
        f"one of them is at least {rule.middle:g}. Otherwise it is negative. Decisions of people override those of the "
        "judges. A question without a positive is left out."
    )
    counts = Counter((label.label, label.by) for label in made.labels)
    who = sorted({by for _, by in counts})
    rows = [(word, *(counts[word, by] for by in who), sum(counts[word, by] for by in who)) for word in LABEL_NAMES]
    note = "Unsettled: as many people said yes as no. Such a candidate is discarded." if "unsettled" in who else ""
    yield Table.of(("label", *who, "all"), rows, "Labels, by who decided", note)


# What is in it.


def _contents(made: BuildOutcome, dataset: Dataset) -> Iterator[Content]:
    yield Table.of_counts("Words of a query", _histogram([len(query.text.split()) for query in dataset.queries]))
    per_query = Counter(len(chunks) for chunks in made.positives.values())
    most = max(per_query)
    edge = min(most, 8)
    rows = [(str(count), per_query[count]) for count in range(1, edge + 1)]
    rest = sum(times for count, times in per_query.items() if count > edge)
    yield Table.of_counts("Relevant documents per query", [*rows, *([(f"over {edge}", rest)] if rest else [])])
    for caption, field in (("Body systems", "body_system"), ("Kinds of questions", "kind")):
        counts = Counter(getattr(question, field) or NOT_STATED for question in made.questions)
        if set(counts) != {NOT_STATED}:
            yield Table.of_counts(caption, counts.most_common())
    yield repeated_queries(dataset.queries).sentence


def _histogram(values: Sequence[int]) -> list[tuple[str, int]]:
    """Return the counts in bins of equal, round width, in ascending order."""
    low, high = min(values), max(values)
    width = next(
        step * 10**power for power in range(9) for step in (1, 2, 5) if (high - low) / (step * 10**power) <= MAX_BINS
    )
    bins = Counter(value // width for value in values)
    return [
        (f"{number * width:,} to {(number + 1) * width - 1:,}" if width > 1 else f"{number:,}", bins[number])
        for number in range(low // width, high // width + 1)
    ]


def _overlap(dataset: Dataset, store: Store) -> Iterator[Content]:
    yield (
        "Terms come from BM25’s English analysis. The more terms a query shares with its relevant documents, the less "
        "reasoning is needed to find them. The hardest negative is the first document in BM25’s ranking that is not "
        "relevant."
    )
    shared = dataset_overlap(dataset, store)
    kinds = {kind: overlap for kind, (_, overlap) in shared.items()}
    rows = [
        (f"{kind}: share of the query’s terms", *_quartiles(overlap.coverage))
        for kind, overlap in kinds.items()
        if len(overlap.coverage)
    ]
    heads = ("measure", "lower quartile", "median", "upper quartile")
    yield Table.of(heads, rows, "Overlap of a query and a document")
    tenths = Counter(min(9, int(10 * share)) for share in kinds[RELEVANT].coverage)
    bars = [(f"{10 * tenth} to {10 * tenth + 10} %", tenths[tenth]) for tenth in range(max(tenths) + 1)]
    yield Table.of_counts("Relevant documents by the share of the query’s terms that they contain", bars)
    yield replace(coverage_table(dataset, shared), name="")  # the datasheet has no CSV files
    yield reference_note(model="")


def _quartiles(values: Floats) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


# Models and prompts, limits.


def _models(made: BuildOutcome) -> Iterator[Content]:
    if not made.asked:
        yield "No LLM was asked."
        return
    if any(asked.scripted for asked in made.asked):
        yield "A person wrote the answers of “scripted” in advance, so numbers about judges do not describe a model."
    families = sorted({family for judge in made.judges if not judge.scripted for family in judge.families})
    if families:
        yield (
            f"The judges belong to the family {', '.join(families)}. The board flags systems that ask an LLM of the "
            "same family, because judges tend to favour the texts of their own family."
        )
    rows = [(asked.step, asked.model, ", ".join(asked.families), asked.digest) for asked in made.asked]
    yield Table.of(("step", "model", "family", "prompt"), rows, "LLMs of each step")
    prompts = {asked.digest: asked for asked in made.asked if asked.prompt}
    for digest, asked in prompts.items():
        yield Verbatim(f"Prompt of {asked.step.partition('(')[0]} ({digest})", asked.prompt)


def _limits(made: BuildOutcome) -> Iterator[Content]:
    plan = made.plan
    yield Bullets([*plan.limits, *GENERAL_LIMITS])
    yield Table.of(
        ("", ""),
        [
            ("Licence", plan.licence or NOT_STATED),
            ("Made by", ", ".join(plan.creators) or NOT_STATED),
            ("Use", plan.uses or NOT_STATED),
            ("Personal and sensitive information", plan.sensitive or NOT_STATED),
            ("Possible benefits and harms", plan.impact or NOT_STATED),
        ],
        "In the words of its makers",
    )
