"""Checks of an audit: what the labels can tell about systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.measure.gap_curve import GapCurve
from r2med.evaluation.measure.incomplete_labels import CUTOFF, Grades, Lists, headline, judged_share
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import detectable_gaps
from r2med.foundation.pages.finding import Evidence, EvidenceCell, Finding, Verdict
from r2med.foundation.text.plurals import counted

ASSUMED_SPREAD = 25.0
"""Standard deviation of the differences between two systems in nDCG@10 × 100, if no two systems are at hand."""
MAX_GAP = 5.0
"""Smallest gap, in points, above which the number of queries is worth a look."""
MAX_UNJUDGED = 0.2
"""Share of unjudged documents in the first ten above which labels are worth a look."""
MAX_SINGLE = 0.5
"""Share of queries with one relevant document above which labels are worth a look."""
FEW_QUERIES = 5
"""Number of queries below which a slice says little."""
NOT_STATED = "not stated"


def detectable_gap(material: AuditMaterial) -> Finding:
    """Estimate the smallest difference between systems that this number of queries can show."""
    values = np.array([headline(material.qrels, lists) for lists in material.rankings.values()])
    return gap_finding(len(material.qrels), values)


def gap_finding(queries: int, values: Floats) -> Finding:
    """Return the smallest difference that this number of queries can show. `values` are points (systems × queries)."""
    if queries < 2:
        return Finding(
            verdict="broken",
            sentence="With one query, no difference between systems can be shown.",
            numbers={"queries": queries},
        )
    curve = GapCurve.of({"": values}) if len(values) > 1 else None
    gap = curve.gap() if curve else None
    if gap is not None:
        basis = f"for the {len(values):,} systems at hand"
        needed = curve.needed(MAX_GAP) if curve and gap > MAX_GAP else None
    else:
        variances: Floats = np.array([[ASSUMED_SPREAD**2]])
        gap = float(detectable_gaps(variances, np.array([float(queries)]))[0])
        basis = f"if differences vary by {ASSUMED_SPREAD:.0f} points between queries, an assumption without two systems"
        needed = None
    if gap >= 100:
        difference = f"no difference in {HEADLINE_MEASURE} can be shown"
    else:
        difference = f"differences below {gap:.1f} points of {HEADLINE_MEASURE} cannot be shown"
    sentence = f"With {queries:,} queries, {difference} {basis}."
    if needed:
        sentence += f" To show {MAX_GAP:.0f} points, about {needed:,} queries are needed."
    verdict: Verdict = "broken" if gap >= 100 else "look" if gap > MAX_GAP else "sound"
    numbers = {
        "queries": queries,
        "gap": round(gap, 2),
        "systems": len(values),
        **({"needed": needed} if needed else {}),
    }
    return Finding(verdict=verdict, sentence=sentence, numbers=numbers)


def unjudged_documents(material: AuditMaterial) -> Finding:
    """Measure how many of the first ten documents of systems have no label."""
    return unjudged_finding(material.qrels, material.rankings)


def unjudged_finding(qrels: Grades, rankings: Mapping[str, Lists]) -> Finding:
    """Return the share of the first ten documents of systems that have no label."""
    shares = {system: 1 - judged_share(qrels, lists).mean() / 100 for system, lists in rankings.items()}
    mean = float(np.mean(list(shares.values())))
    sentence = f"{100 * mean:.0f} % of the first {CUTOFF} documents of {counted(len(shares), 'system')} have no label"
    negatives = any(grade <= 0 for grades in qrels.values() for grade in grades.values())
    if negatives:
        sentence += "; they count as irrelevant."
    else:
        sentence += ". Only relevant documents are listed, so it is not known which others were looked at."
    if mean > MAX_UNJUDGED:
        sentence += " r2med judge labels them."
    rows = [(system, round(100 * float(share), 2)) for system, share in shares.items()]
    heads = ("system", f"% of the first {CUTOFF} without a label")
    return Finding(
        verdict="look" if mean > MAX_UNJUDGED else "sound",
        sentence=sentence,
        numbers={"share": round(mean, 4), "systems": len(shares)},
        evidence=(Evidence.of(heads, rows),),
    )


def single_relevant(material: AuditMaterial) -> Finding:
    """Count the queries that have only one relevant document."""
    single = sum(len(documents) == 1 for documents in material.relevant.values())
    total = len(material.qrels)
    share = single / total
    sentence = f"{single:,} of {total:,} queries have one relevant document only"
    look = share > MAX_SINGLE
    sentence += ": their score depends on the rank of this one." if look else "."
    return Finding(
        verdict="look" if look else "sound", sentence=sentence, numbers={"queries": single, "share": round(share, 4)}
    )


def label_distribution(material: AuditMaterial) -> Finding:
    """Describe how the labels are distributed over grades and slices of queries."""
    counts = [len(documents) for documents in material.relevant.values()]
    grades = Counter(grade for judged in material.qrels.values() for grade in judged.values())
    sentence = (
        f"{counted(sum(counts), 'relevant document')} for {counted(len(counts), 'query', 'queries')}: "
        f"{np.mean(counts):.1f} per query, at most {max(counts):,}."
    )
    evidence = [Evidence.of(("grade", "labels"), sorted(grades.items(), reverse=True), "Labels by grade")]
    slices = _slices(material)
    small = sum(label != NOT_STATED and int(row[1] or 0) < FEW_QUERIES for label, row in slices.items())
    if small:
        sentence += f" {small:,} of {len(slices):,} body systems have fewer than {FEW_QUERIES} queries."
    if slices:
        heads = ("body system", "queries", "relevant documents", "per query", "one only")
        evidence.append(Evidence.of(heads, slices.values(), "Labels by body system"))
    card = material.dataset.card if material.dataset else None
    if card and card.task:
        row = (card.task, len(counts), sum(counts), round(sum(counts) / len(counts), 2), counts.count(1))
        heads = ("task", "queries", "relevant documents", "per query", "one only")
        evidence.append(Evidence.of(heads, [row], "Labels by task"))
    return Finding(
        verdict="sound",
        sentence=sentence,
        numbers={"relevant": sum(counts), "grades": len(grades), "slices": len(slices), "small_slices": small},
        evidence=tuple(evidence),
    )


def _slices(material: AuditMaterial) -> dict[str, Sequence[EvidenceCell]]:
    """Return the labels of each body system; empty if no query states one."""
    members: dict[str, list[int]] = {}
    for query, documents in material.relevant.items():
        known = material.queries.get(query)
        members.setdefault((known.body_system if known else "") or NOT_STATED, []).append(len(documents))
    if set(members) == {NOT_STATED}:
        return {}
    return {
        label: (label, len(counts), sum(counts), round(sum(counts) / len(counts), 2), counts.count(1))
        for label, counts in sorted(members.items())
    }
