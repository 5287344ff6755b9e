"""Does a right answer explain the retrieval gain?

An LLM compares the final answer of each generated text with the reference answer. Without one, only a text that is the
reference counts as right, and all others are undecided. Then the gains of texts with right and wrong answers are
compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from r2med.analysis.estimates import correlation_interval, correlation_of_means, mean_interval
from r2med.analysis.llm_questions import Questions
from r2med.analysis.material import Material
from r2med.analysis.scaling import Expanded, author_notes, expanded_systems, gains
from r2med.assessment.answers.answer_controls import answer_controls, references_of
from r2med.assessment.answers.answer_rule import by_rule
from r2med.assessment.panels.panel import Panel
from r2med.assessment.panels.planted_controls import plant
from r2med.assessment.panels.raters import LLMRater
from r2med.assessment.panels.ratings import Ratings, agreement_table
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.data.dataset import Query
from r2med.evaluation.comparison.standings import slice_facts
from r2med.evaluation.comparison.undecided_ranges import with_ranges
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.slices import KINDS, slices
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Command, Notice, Setting
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Section, Table

GRADES = "answer-grade"
"""The rubric of the judge, and the name of its questions in plans and notes."""


@dataclass(frozen=True)
class Judged:
    """A generated text for one query, with the verdicts of the rule and of the LLM. None means not decided."""

    dataset: str
    query: str
    gold: str
    text: str
    rule: bool | None
    llm: bool | None = None
    why: str = ""
    asked: bool = False
    """True if the LLM was asked. Then only its verdict counts."""

    @property
    def right(self) -> float:
        """1 if the answer is right, 0 if it is wrong, NaN if it was not decided."""
        verdict = self.llm if self.asked else self.rule
        return np.nan if verdict is None else float(verdict)


def accuracy_range(right: Floats) -> Estimate | None:
    """Return the share of right texts: a range, if some are undecided (NaN)."""
    undecided = np.isnan(right)
    rows = np.where(undecided, 0.0, right)[None], undecided.astype(np.float64)[None]
    return with_ranges({"": rows[0]}, {"": rows[1]}, 1.0)[0] if len(right) else None


def judge_texts(
    items: Sequence[tuple[str, Query, str]], questions: Questions, last: bool = False
) -> tuple[list[Judged], list[str]]:
    """Judge items (dataset, query, text). Return them with notes. Without an LLM, only the rule judges.

    The LLM first gets planted controls made from these texts, in which the first sentence is replaced, or the `last`
    one. Raises UserError if it fails them. If it fails those among the texts, its verdicts do not count.
    """
    rules = [by_rule(text, query.answer) for _, query, text in items]
    asked = bool(questions.runtime.setup.llm and items)
    said, notes = _ratings(items, questions, last) if asked else ({}, [])
    found = []
    for number, ((dataset, query, text), rule) in enumerate(zip(items, rules, strict=True)):
        right, why = said.get(number, (None, ""))
        found.append(Judged(dataset, query.id, query.answer, text, rule, right, why, asked))
    return found, notes


def _ratings(
    items: Sequence[tuple[str, Query, str]], questions: Questions, last: bool
) -> tuple[dict[int, tuple[bool | None, str]], list[str]]:
    """Return the number of an item -> the verdict of the LLM with its reason, and notes. A rehearsal asks nothing."""
    rubric = RUBRICS[GRADES]
    pool = [
        Item((q.id, ""), {"question": q.text, "reference": q.answer, "text": text}, rubric.name, source=dataset)
        for dataset, q, text in items
    ]
    rater = LLMRater.of(questions.chat, rubric, questions.tallies[GRADES])
    names = list(dict.fromkeys(dataset for dataset, _, _ in items))
    references = {name: references_of(query for dataset, query, _ in items if dataset == name) for name in names}
    controls = plant(answer_controls(pool, references, last), " ".join(names))
    panel = Panel([rater], controls, untested=True)
    if questions.rehearsal:
        questions.add_preview(GRADES, rater.preview(panel.items(pool)))
        return {}, []
    test = panel.test(rater, "answers")
    rated = panel.rate(rater, pool)
    notes = [f"{rater.name} is a judge that was not tested: the texts give too few controls."]
    verdicts = {number: (rater.says_yes(rating), rating.why) for number, rating in rated.ratings.items()}
    return verdicts, [] if test.is_enough else notes


def rule_table(name: str, judged: Sequence[Judged]) -> Table:
    """Return a table of the agreement between rule and LLM where both decided."""
    words = {False: "wrong", True: "right"}
    given = (
        (number, who, words[said])
        for number, each in enumerate(judged)
        for who, said in (("rule", each.rule), ("LLM", each.llm))
        if said is not None
    )
    found = Ratings.of([*words.values()], given).agreement("rule", "LLM")
    decided = [sum(getattr(each, who) is not None for each in judged) for who in ("rule", "llm")]
    heads = ("texts", "decided by rule", "decided by LLM")
    return agreement_table(heads, [((len(judged), *decided), found)], "Rule and LLM as judges", name)


def answers(material: Material) -> Section:
    """Return the accuracy of the answers of every expansion, with its retrieval gain."""
    texts = {each: _texts(material, each) for each in expanded_systems(material.collection)}
    everything, judge_notes = judge_texts(
        [item for items in texts.values() for item in items], material.questions, last=True
    )
    following = iter(everything)
    systems = [(each, list(islice(following, len(items)))) for each, items in texts.items() if items]
    if not systems:
        raise UserError(
            "no record has generated texts for queries with an answer: ",
            Command("run", "hyde(author) → bm25", data="demo"),
            " makes one",
        )
    rows, queries, parts, outcomes = [], [], [], []
    for each, judged in systems:
        gain = _gains(material, each, judged)
        right = np.array([one.right for one in judged])
        rows.append(
            [
                each.system,
                each.llm,
                len(judged),
                accuracy_range(right),
                int(np.isnan(right).sum()),
                *_effects(right, gain),
            ]
        )
        queries += [_query_row(each, one, points) for one, points in zip(judged, gain.tolist(), strict=True)]
        parts += list(_slice_rows(material, each, judged, right, gain))
        keys = [(one.dataset, one.query) for one in judged]
        outcomes.append((each, dict(zip(keys, zip(right.tolist(), gain.tolist(), strict=True), strict=True))))
    heads = ("system", "LLM", "texts", "accuracy", "undecided", "gain", "gain when right", "gain when wrong", "ρ")
    note = (
        "Accuracy: share of texts whose final answer is the reference answer; a range from all undecided texts wrong "
        f"to all right. Gain: {material.measure} × 100 "
        "over the same system without the expansion. ρ: Spearman's correlation of accuracy and gain over queries."
    )
    tables = [
        Table.of(heads, rows, "Accuracy and gain", note, name="answers"),
        Table.of(LLM_HEADS, llm_rows(outcomes), "Across LLMs", LLM_NOTE, name="answers-llms"),
        rule_table("answers-agreement", everything),
        Table.of(("system", "by", "slice", "texts", "accuracy", "gain"), parts, "By slice", name="answers-slices"),
        Table.of(
            ("system", "dataset", "query", "reference answer", "reason of the LLM", "by rule", "by LLM", "gain"),
            queries,
            "By query",
            name="answers-queries",
        ),
    ]
    notes = [*author_notes(each.llm for each, _ in systems), *judge_notes, *material.questions.notes(GRADES)]
    if not material.runtime.setup.llm:
        notes.append(
            Notice(
                "No LLM was named with ",
                Setting("Setup", llm=...),
                ", so only texts that are the reference answer count as right. All others are undecided.",
            )
        )
    return Section("Answers and retrieval", tables, _lead(rows), notes, name="answers")


ByQuery = Mapping[tuple[str, str], tuple[float, float]]
"""(dataset, query) -> 1 if the text is right, and its gain."""
LLM_HEADS = ("expansion", "LLMs", "queries", "ρ of accuracy and gain")
LLM_NOTE = (
    "Does an LLM with more right answers gain more? Spearman's ρ over at least three LLMs with the same expansion and "
    "retriever. Queries: those that are decided for all LLMs. No interval is given."
)


def llm_rows(outcomes: Sequence[tuple[Expanded, ByQuery]]) -> list[list[Value]]:
    """Return the correlation of accuracy and gain across the LLMs of each expansion."""
    groups: dict[str, list[ByQuery]] = {}
    for each, by_query in outcomes:
        groups.setdefault(f"{each.method} → {each.plain}", []).append(by_query)
    rows: list[list[Value]] = []
    for name, llms in groups.items():
        shared = [query for query in llms[0] if all(query in other for other in llms)]
        table = np.array([[llm[query] for query in shared] for llm in llms]).reshape(len(llms), -1, 2)
        decided = int((~np.isnan(table)).all(axis=(0, 2)).sum())
        rows.append([name, len(llms), decided, correlation_of_means(table[:, :, 0], table[:, :, 1])])
    return rows


def _texts(material: Material, each: Expanded) -> list[tuple[str, Query, str]]:
    """Return the generated texts of a system: dataset, query and text."""
    items = []
    for name, dataset in material.recorded.items():
        kept = material.collection.cell(each.system, name)
        texts = kept.generated() if kept else {}
        asked = [query for query in dataset.queries if query.answer and texts.get(query.id)]
        items += [(name, query, texts[query.id][0]) for query in asked[: material.queries or None]]
    return items


def _gains(material: Material, each: Expanded, judged: Sequence[Judged]) -> Floats:
    """Return the gain of the expansion for each query; NaN if the plain system was not run."""
    points: dict[tuple[str, str], float] = {}
    for name in {one.dataset for one in judged}:
        if known := gains(material.collection, each, name, material.measure):
            points |= {(name, query): gain for query, gain in zip(known[0], known[1].tolist(), strict=True)}
    return np.array([points.get((one.dataset, one.query), np.nan) for one in judged])


def _effects(right: Floats, gain: Floats) -> list[Value]:
    parts = gain, gain[right == 1], gain[right == 0]
    return [*(mean_interval(part, top=None) for part in parts), correlation_interval(right, gain)]


def _query_row(each: Expanded, one: Judged, gain: float) -> list[Value]:
    said = {None: "undecided", True: "right", False: "wrong"}
    points = None if np.isnan(gain) else gain
    return [each.system, one.dataset, one.query, one.gold, one.why, said[one.rule], said[one.llm], points]


def _slice_rows(
    material: Material, each: Expanded, judged: Sequence[Judged], right: Floats, gain: Floats
) -> Iterator[list[Value]]:
    places: dict[str, list[int]] = {}
    for number, one in enumerate(judged):
        places.setdefault(one.dataset, []).append(number)
    facts = slice_facts(material.collection, {name: [judged[n].query for n in where] for name, where in places.items()})
    for kind in KINDS:
        for part in slices(kind, facts):
            here = [places[name][position] for name, positions in part.queries.items() for position in positions]
            if len(here) > 1:  # resampling one query does not show any spread
                accuracy, gained = accuracy_range(right[here]), mean_interval(gain[here], top=None)
                yield [each.system, kind, part.label, len(here), accuracy, gained]


def _lead(rows: Sequence[Sequence[Value]]) -> str:
    system, _, texts, accuracy, undecided, _, right, wrong, _ = rows[0]
    if not isinstance(accuracy, Estimate) or undecided == texts:
        return "No answer could be decided."
    gained = [
        f"{gain.value:+.1f} points when the answer is {when}"
        for when, gain in (("right", right), ("wrong", wrong))
        if isinstance(gain, Estimate)
    ]
    gain = f" The system gains {' and '.join(gained)}." if gained else ""
    share = f"{accuracy.value:.0%}" if accuracy.most is None else f"{accuracy.value:.0%} to {accuracy.most:.0%}"
    return f"{system} has {texts:,} texts. {undecided:,} are undecided; {share} of the texts are right.{gain}"
