"""Does better retrieval help the answer? An LLM answers with no, retrieved, relevant or random passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.analysis.answer_accuracy import agreement_table, judge
from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.analysis.overlap import barred_rows, gold_pairs
from r2med.analysis.unjudged import ranked_lists
from r2med.ask.answers import Choice, LLMAnswer, OpenAnswer, Truth, choice_of
from r2med.ask.llm_questions import Questions
from r2med.core.errors import UserError
from r2med.data.dataset import Dataset, Query
from r2med.llm.costs import approximate_tokens
from r2med.measure.scores import Floats
from r2med.pages.cells import Value
from r2med.pages.estimate import Estimate
from r2med.pages.page import Curves, Section, Table
from r2med.text.english import english

NO_PASSAGES, RELEVANT, RANDOM = "no passages", "relevant passages", "random passages"
LETTERS = "ABCD"
EMPTY_TEXT = "(none)"


@dataclass(frozen=True)
class PassageQuestion:
    """A question with the passages that an LLM reads before it answers."""

    condition: str
    depth: int
    """Number of passages."""
    dataset: str
    query: Query
    passages: str
    options: tuple[str, ...]

    @property
    def fields(self) -> dict[str, str]:
        """Values of the template's fields."""
        options = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, self.options, strict=False))
        return {"text": self.passages or EMPTY_TEXT, "question": self.query.text, "options": options}


def _is_right(item: PassageQuestion, answer: Choice) -> bool:
    return item.options[answer.choice] == item.query.answer


class Supported(LLMAnswer):
    """The LLM's verdict: True if the passages support an answer."""

    supported: Truth


def downstream(material: Material) -> Section:
    """Return how well an LLM answers with different passages, in its own words and by choosing an option."""
    if not material.runtime.setup.llm:
        raise UserError("downstream needs an LLM: name one, as in Setup(llm='smollm2')")
    questions = material.questions
    items = [item for name, dataset in material.recorded.items() for item in _items(material, name, dataset)]
    if not items:
        raise UserError("nothing can be asked: no query has an answer, or no record has its run file beside it")
    with_options = [item for item in items if len(item.options) > 1]
    chosen = questions.ask(
        "answer-choice",
        [item.fields for item in with_options],
        lambda n: choice_of(len(with_options[n].options)),
        lambda n, answer: _is_right(with_options[n], answer),
    )
    written = questions.ask(
        "answer-open",
        [item.fields for item in items],
        lambda _: OpenAnswer,
        lambda _, answer: str(answer.answer),
        rehearsed=[f"an answer, number {number}" for number in range(len(items))],
    )
    answered = [(item, text) for item, text in zip(items, written, strict=True) if text is not None]
    judged = judge([(item.dataset, item.query.id, item.query.answer, text) for item, text in answered], questions)
    read = [(item, text) for item, text in answered if item.passages]
    support = [{**item.fields, "answer": text} for item, text in read]
    supported = questions.ask("support", support, lambda _: Supported, lambda _, answer: bool(answer.supported))
    figures = {
        "choice": _by_condition(with_options, [np.nan if each is None else float(each) for each in chosen]),
        "open": _by_condition([item for item, _ in answered], [each.right for each in judged]),
        "grounded": _by_condition([item for item, _ in read], [grounded(text, item) for item, text in read]),
        "supported": _by_condition([item for item, _ in read], [np.nan if s is None else float(s) for s in supported]),
    }
    rows: list[list[Value]] = []
    for condition, depth in dict.fromkeys((item.condition, item.depth) for item in items):
        mine = [item for item in items if (item.condition, item.depth) == (condition, depth)]
        tokens = float(np.mean([approximate_tokens(f"{item.query.text} {item.passages}") for item in mine]))
        known = [each.get((condition, depth)) for each in figures.values()]
        passages = None if condition == RELEVANT else depth  # the number differs between questions
        rows.append([condition, passages, len(mine), *(None if k is None else mean_interval(k) for k in known), tokens])
    heads = ("read before answering", "passages", "questions", *figures, "tokens")
    note = (
        "Choice: the LLM chooses the right one of up to four options; the others are answers of other queries. Open: "
        "the answer in the LLM's own words is the reference answer, if that could be decided. Grounded: all words of "
        "an open answer are in the passages or the question. Supported: the LLM itself says that the passages support "
        "its answer. Tokens: about how many the LLM reads for each question."
    )
    title = "Answers by the passages that were read"
    table = Table.of(heads, rows, title, note, name="downstream", chart=_chart(rows, material))
    asked = ("answer-choice", "answer-open", "judge-answer", "support")
    notes = [*questions.notes(*asked), _bill(questions), f"{questions.card.spec} is also the judge of its own answers."]
    return Section(
        "Downstream answers",
        [table, agreement_table("downstream-agreement", judged)],
        _lead(rows),
        notes,
        name="downstream",
    )


def _items(material: Material, name: str, dataset: Dataset) -> Iterator[PassageQuestion]:
    asked = [query for query in dataset.queries if query.answer and query.id in dataset.qrels]
    queries = asked[: material.queries or None]
    gold = gold_pairs(dataset, queries)
    barred = barred_rows(dataset, queries, gold)
    lists = list(_lists(material, name, dataset))
    most = max(material.depths)
    for number, query in enumerate(queries):
        options = options_of(query, asked)
        random = np.random.default_rng([number, len(dataset.corpus)]).permutation(len(dataset.corpus))
        drawn = [row for row in random[: most + len(barred[number])].tolist() if row not in barred[number]][:most]
        mine = gold.rows[gold.queries == number].tolist()[:most]
        read = [(NO_PASSAGES, 0, []), (RELEVANT, len(mine), mine), (RANDOM, len(drawn), drawn)]
        for system, ranked in lists:
            rows = [row for row in dataset.corpus.rows(ranked.get(query.id, ())).tolist() if row >= 0]
            read += [(system, depth, rows[:depth]) for depth in material.depths]
        for condition, depth, rows in read:
            shown = "\n\n".join(f"[{n}] {text}" for n, text in enumerate(dataset.corpus.texts(rows), 1))
            # The number of relevant passages differs between queries, but they are one condition.
            depth = 0 if condition in (NO_PASSAGES, RELEVANT) else depth
            yield PassageQuestion(condition, depth, name, query, shown, options)


def _lists(material: Material, name: str, dataset: Dataset) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    """Yield the rankings of the named systems, or of the best system if none is named."""
    systems = material.collection.systems
    if not material.systems:
        systems = (systems[material.best or 0],)
    for system in systems:
        kept = material.collection.cell(system, name)
        if kept and (lists := ranked_lists(kept, dataset, max(material.depths))) is not None:
            yield system, lists


def options_of(query: Query, others: Sequence[Query]) -> tuple[str, ...]:
    """Return the right answer and up to three answers of other queries, in an order that only the query determines."""
    random = np.random.default_rng(list(query.id.encode()))
    wrong = sorted({other.answer for other in others} - {query.answer})
    drawn = [wrong[number] for number in random.permutation(len(wrong))[: len(LETTERS) - 1]]
    options = [query.answer, *drawn]
    return tuple(options[number] for number in random.permutation(len(options)))


def grounded(answer: str, item: PassageQuestion) -> float:
    """Return 1 if all terms of an answer are in the passages or in the question, otherwise 0."""
    terms = set(english(answer))
    return float(bool(terms) and terms <= set(english(f"{item.passages} {item.query.text}")))


def _by_condition(items: Sequence[PassageQuestion], values: Sequence[float]) -> dict[tuple[str, int], Floats]:
    parts: dict[tuple[str, int], list[float]] = {}
    for item, value in zip(items, values, strict=True):
        parts.setdefault((item.condition, item.depth), []).append(value)
    return {key: np.array(each) for key, each in parts.items()}


def _chart(rows: Sequence[Sequence[Value]], material: Material) -> Curves:
    """Return a chart of accuracy by the number of passages. Every curve starts with no passages."""
    series: dict[str, list[tuple[float, Estimate]]] = {}
    for condition, depth, _, *figures in rows:
        for form, figure in zip(("choice", "open"), figures, strict=False):
            if isinstance(figure, Estimate) and isinstance(depth, int) and condition not in (RELEVANT, RANDOM):
                where = material.collection.systems if condition == NO_PASSAGES else [condition]
                for system in where:
                    series.setdefault(f"{system}, {form}", []).append((float(depth), figure))
    return Curves({name: points for name, points in series.items() if len(points) > 1}, "passages read", "accuracy")


def _bill(questions: Questions) -> str:
    cost = questions.cost
    priced = "price not known" if cost.unpriced else f"${cost.dollars:.2f}"
    spent = f"{cost.calls:,} calls, {cost.llm_tokens:,} tokens and {cost.seconds:,.0f} s of the LLM"
    return f"The questions of this report have taken {spent} so far; {priced}."


def _lead(rows: Sequence[Sequence[Value]]) -> str:
    shares = []
    for condition, depth, _, chosen, written, *_ in rows:
        figure = chosen if isinstance(chosen, Estimate) else written
        if isinstance(figure, Estimate):
            shares.append(f"{condition}{f' ({depth})' if depth else ''} {figure.value:.0%}")
    return f"Right answers by passages read: {', '.join(shares)}." if shares else "No question was answered."
