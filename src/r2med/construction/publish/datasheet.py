"""The datasheet of a benchmark: how it was made and from what, how far its labels can be trusted, what is in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from r2med.analysis.overlap import GOLD, dataset_overlap
from r2med.construction.publish.outcome import Outcome
from r2med.construction.review.labels import Word, overrating
from r2med.construction.review.reviews import VERDICTS, rating_table
from r2med.construction.steps.pool_coverage import Contribution, Coverage, contributions
from r2med.core.version import __version__
from r2med.data.check import repeated_queries
from r2med.data.dataset import Dataset
from r2med.measure.agreement import Agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha
from r2med.measure.scores import Floats
from r2med.pages.cells import Column
from r2med.pages.estimate import Estimate
from r2med.pages.page import Bars, Bullets, Content, Page, Section, Table, Verbatim
from r2med.store import Store

NOT_STATED = "not stated"
WORDS: tuple[Word, ...] = ("positive", "discarded", "negative")
SHOWN = 30
"""Sources that are told one by one."""
BINS = 7
"""Bars of a distribution, about."""

GENERAL_LIMITS = (
    "Only candidates that some retriever of the committee proposed were judged: what nobody proposed counts as not "
    "relevant, which favours systems like those of the committee.",
    "Labels come from LLM judges, corrected where people looked. Where they err, every score here errs with them.",
    "Scores compare retrieval systems. They say nothing of whether advice that rests on these documents is safe.",
)


def datasheet(made: Outcome, dataset: Dataset, files: Mapping[str, str], store: Store) -> Page:
    """Return the datasheet of what was built; `files` are those of the dataset, with their SHA-256."""
    plan = made.plan
    sections = [
        Section("How it was made", list(_making(made))),
        Section("Sources and licences", [_sources(made)]),
        Section("Candidates", list(_pool(made))),
        Section("Labels", list(_labels(made))),
        Section("How far the labels can be trusted", list(_trust(made))),
        Section("What is in it", list(_contents(made, dataset))),
        Section("Words that queries share with their documents", list(_overlap(dataset, store))),
        Section("Models and prompts", list(_models(made))),
        Section("Known limits and use", list(_limits(made))),
        Section("Files", [Table.of(("file", "SHA-256"), list(files.items()), "SHA-256 of each")]),
    ]
    foot = f"Written by r2med {__version__} from the build’s own records."
    facts = list(_facts(made, dataset))
    return Page(plan.title or plan.name, sections, plan.description, facts, foot, kind="datasheet")


def _facts(made: Outcome, dataset: Dataset) -> Iterator[tuple[str, str, str]]:
    positives, queries = dataset.qrels.positives, len(dataset.queries)
    yield "Queries", f"{queries:,}", f"of {queries + len(made.left_over):,} questions that were judged"
    yield "Documents", f"{len(dataset.corpus):,}", ""
    yield "Positives", f"{positives:,}", f"{positives / queries:.1f} a query"
    precision = made.accepted("positive")
    if precision:
        whole = precision.reviewed == precision.items
        told = "people saw all" if whole else _interval(precision, ".0%")
        yield "Precision of positives", f"{precision.value:.0%}", told
    else:
        why = "judges called nothing positive that people saw" if made.decisions else "no person has reviewed a sample"
        yield "Precision of positives", "unknown", why
    alpha = next((row for row in _agreements(made) if row[0].startswith("Krippendorff")), None)
    if alpha:
        yield "Agreement of people", f"α {alpha[1].value:.2f}", _interval(alpha[1], ".2f")
    told = "answers that a person wrote: no model was asked" if any(judge.scripted for judge in made.judges) else ""
    yield "Judged by", ", ".join(sorted({judge.model for judge in made.judges})) or "people", told


def _interval(estimate: Estimate, form: str) -> str:
    return "too few reviews for an interval" if estimate.low is None else f"95 % interval {estimate.interval(form)}"


# How it was made.


def _making(made: Outcome) -> Iterator[Content]:
    rows: list[tuple[str, str, int, int, str, int]] = []
    for done in made.steps:
        reasons = [*done.rejected.items(), *((f"failed: {kind}", count) for kind, count in done.failures.items())]
        told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons, key=lambda pair: -pair[1]))
        calls = done.cost.calls
        rows.append((done.step, done.stream, done.kept, sum(done.rejected.values()), told, calls))
    if made.left_over:
        rest = len(made.left_over)
        rows.append(("labels", "questions", len(made.questions), rest, f"{rest:,} no positive", 0))
    yield Table.of(
        ("step", "of", "kept", "left out", "why", "LLM calls"),
        rows,
        "Every step: what was kept, what was left out and why (rejected.jsonl holds what was left out)",
    )
    after = [(step.partition("(")[0], kept) for step, stream, kept, *_ in rows if stream == "questions"]
    yield Bars("Questions after each step", after)


def _sources(made: Outcome) -> Table:
    rows = [
        (kind, source or NOT_STATED, licence or NOT_STATED, count)
        for (kind, source, licence), count in made.sources.most_common()
    ]
    if rest := rows[SHOWN:]:
        rows = [*rows[:SHOWN], (f"{len(rest)} more", "", "see provenance.jsonl", sum(row[3] for row in rest))]
    return Table.of(("what", "source", "licence", "how many"), rows, "Where queries and documents come from")


def _pool(made: Outcome) -> Iterator[Content]:
    """Yield who proposed the candidates and the positives among them, and how many positives nobody proposed."""
    positive = {(query, chunk) for query, chunks in made.positives.items() for chunk in chunks}
    kept = [each for each in made.candidates() if (each.question, each.chunk) in positive]
    rows = []
    among = contributions(kept)
    for kind, by_name in contributions(made.candidates()).items():
        for name, each in by_name.items():
            found = among[kind].get(name, Contribution(0, 0))
            rows.append((name, kind.removesuffix("s"), each.proposed, each.alone, found.proposed, found.alone))
    heads = ("proposed by", "of", "candidates", "alone", "positives", "alone")
    yield Table.of(heads, rows, "Who proposed the candidates, and what nobody else did")
    coverage = Coverage.of(kept)
    if coverage.leave_one_out is not None and coverage.at_least is not None:
        yield (
            f"About {coverage.leave_one_out:,.0f} positives were proposed by nobody, judged by what each member found "
            f"and the others missed; at least {coverage.at_least:,.0f} by Chao’s bound. Members that search alike miss "
            "alike, so there may be more."
        )


# Labels, and how far they can be trusted.


def _labels(made: Outcome) -> Iterator[Content]:
    rule = made.plan.labels
    yield (
        "Judges score each candidate from 0 to 5 for answer relevance and for reasoning support. It is positive if "
        f"both mean scores are at least {rule.positive:g}; discarded, which counts as not judged, if one of them is at "
        f"least {rule.middle:g}; otherwise negative. What people decided goes before what judges say. A question "
        "without a positive becomes no query."
    )
    counts = Counter((label.label, label.by) for label in made.labels)
    who = sorted({by for _, by in counts})
    rows = [(word, *(counts[word, by] for by in who), sum(counts[word, by] for by in who)) for word in WORDS]
    yield Table.of(("label", *who, "all"), rows, "Labels, by who decided")


def _trust(made: Outcome) -> Iterator[Content]:
    known = [
        (f"{word}, accepted by people", each, f"{each.reviewed:,} of {each.items:,}")
        for word in WORDS
        if (each := made.accepted(word))
    ]
    if known:
        yield (
            "People saw a sample of what the judges labelled. The share of all that they would accept is estimated "
            "from their sample and the judges’ scores of everything (prediction-powered, for these labels); it holds "
            "if the sample was drawn at random among candidates of a label."
        )
        columns = (Column("label"), Column("share", "share", 1), Column("seen"))
        yield Table(columns, known, "What people would accept, by the label that judges gave")
        confusion = made.confusion()
        rows = [(word, *(confusion[word, verdict] for verdict in VERDICTS)) for word in WORDS]
        yield Table.of(("judges say", *VERDICTS), rows, "Judges against people")
    else:
        yield "No person has reviewed a sample: how many of the positives are right is not known (r2med review)."
    if agreements := list(_agreements(made)):
        coefficients = [(name, each, each.units) for name, each in agreements]
        yield Table.of(("coefficient", "value", "candidates"), coefficients, "Agreement of people beyond chance")
    controls = overrating(made.streams.judgements(), made.plan.labels)
    if controls:
        yield (
            "Controls were planted among the candidates: texts that cannot be evidence. A judge that calls one "
            "positive overrates; controls are in no qrels."
        )
        yield Table.of(
            ("judge", "control", "planted", "called positive", "discarded", "mean relevance", "mean support"),
            [(c.judge, c.control, c.count, c.positive, c.discarded, c.relevance, c.support) for c in controls],
            "Planted controls",
        )
    else:
        yield "No controls were planted: how far the judges overrate is not known."


def _agreements(made: Outcome) -> Iterator[tuple[str, Agreement]]:
    """Yield the coefficients that are defined for the people there are."""
    _, people, ratings = rating_table(made.reviews)
    if len(people) < 2:
        return
    rows: list[tuple[str, Agreement]] = [("Krippendorff’s α, ordinal", krippendorff_alpha(ratings, "ordinal"))]
    rows.append(("Cohen’s κ", cohen_kappa(ratings)) if len(people) == 2 else ("Fleiss’ κ", fleiss_kappa(ratings)))
    yield from ((name, each) for name, each in rows if not math.isnan(each.value))


# What is in it.


def _contents(made: Outcome, dataset: Dataset) -> Iterator[Content]:
    yield Bars("Words of a query", _histogram([len(query.text.split()) for query in dataset.queries]))
    per_query = Counter(len(chunks) for chunks in made.positives.values())
    most = max(per_query)
    edge = min(most, 8)
    rows = [(str(count), per_query[count]) for count in range(1, edge + 1)]
    rest = sum(times for count, times in per_query.items() if count > edge)
    yield Bars("Positives of a query", [*rows, *([(f"over {edge}", rest)] if rest else [])])
    for caption, field in (("Body systems", "body_system"), ("What is asked for", "kind")):
        counts = Counter(getattr(question, field) or NOT_STATED for question in made.questions)
        if set(counts) != {NOT_STATED}:
            yield Bars(caption, counts.most_common())
    repeats = repeated_queries(dataset.queries)
    pairs = ", ".join(f"{query} as {earlier}" for query, earlier in repeats[:SHOWN])
    yield f"Queries with the text of an earlier one: {len(repeats):,}{f' ({pairs})' if pairs else ''}."


def _histogram(values: Sequence[int]) -> list[tuple[str, int]]:
    """Return counts in bins of one round width, from the least to the greatest."""
    low, high = min(values), max(values)
    width = next(
        step * 10**power for power in range(9) for step in (1, 2, 5) if (high - low) / (step * 10**power) <= BINS
    )
    bins = Counter(value // width for value in values)
    return [
        (f"{number * width:,} to {(number + 1) * width - 1:,}" if width > 1 else f"{number:,}", bins[number])
        for number in range(low // width, high // width + 1)
    ]


def _overlap(dataset: Dataset, store: Store) -> Iterator[Content]:
    yield (
        "Terms are those of BM25’s English analysis. The more a query shares with its documents, the less it needs "
        "reasoning to find them. The hardest negative is what BM25 ranks first of all that is not relevant."
    )
    kinds = {kind: overlap for kind, (_, overlap) in dataset_overlap(dataset, store).items()}
    rows = [
        (f"{kind}: {name}", *_quartiles(getattr(overlap, field)))
        for name, field in (("terms of the query that it has", "coverage"), ("Jaccard", "jaccard"))
        for kind, overlap in kinds.items()
        if len(overlap.coverage)
    ]
    heads = ("", "lower quartile", "median", "upper quartile")
    yield Table.of(heads, rows, "Overlap of a query and a document")
    tenths = Counter(min(9, int(10 * share)) for share in kinds[GOLD].coverage)
    bars = [(f"{10 * tenth} to {10 * tenth + 10} %", tenths[tenth]) for tenth in range(max(tenths) + 1)]
    yield Bars("Gold documents, by the share of the query’s terms that they have", bars)


def _quartiles(values: Floats) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


# Models and prompts, limits.


def _models(made: Outcome) -> Iterator[Content]:
    if not made.asked:
        yield "No LLM was asked."
        return
    if any(asked.scripted for asked in made.asked):
        yield "Answers of “scripted” were written beforehand by a person: what is said here of judges shows no model."
    families = sorted({family for judge in made.judges if not judge.scripted for family in judge.families})
    if families:
        yield (
            f"Judges are of the family {', '.join(families)}. A system that asks an LLM of this family is flagged on "
            "the board: judges tend to favour what their own kind writes."
        )
    rows = [(asked.step, asked.model, ", ".join(asked.families), asked.digest) for asked in made.asked]
    yield Table.of(("step", "model", "family", "prompt"), rows, "Which LLM each step asked")
    prompts = {asked.digest: asked for asked in made.asked if asked.prompt}
    for digest, asked in prompts.items():
        yield Verbatim(f"Prompt of {asked.step.partition('(')[0]} ({digest})", asked.prompt)


def _limits(made: Outcome) -> Iterator[Content]:
    plan = made.plan
    yield Bullets([*plan.limits, *GENERAL_LIMITS])
    yield Table.of(
        ("", ""),
        [
            ("Licence", plan.licence or NOT_STATED),
            ("Made by", ", ".join(plan.creators) or NOT_STATED),
            ("Use", plan.uses or NOT_STATED),
            ("Personal and sensitive information", plan.sensitive or NOT_STATED),
            ("Good and harm it may do", plan.impact or NOT_STATED),
        ],
        "In the words of its makers",
    )
