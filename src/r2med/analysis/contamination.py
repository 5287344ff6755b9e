"""Does an LLM know the dataset by heart? It sees the start of a text and must continue it word for word.

The texts are documents of the corpus, and questions with their reference answers. They are a fixed random sample. Texts
that are too short are left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np

from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.data.dataset import Dataset
from r2med.evaluation.running.plan_page import Plan, PlanRow
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Estimate, Value
from r2med.foundation.pages.page import Section, Table
from r2med.foundation.text.plurals import counted
from r2med.models.ask.answers import LLMAnswer, Text
from r2med.models.ask.ask import Ask, AskedItem
from r2med.models.llm.costs import listed_kinds
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import resolve_llm
from r2med.models.prompts.templates import packaged_template

PROMPT = "continue"
"""The name of the question and of its template."""
SHOWN_WORDS, HIDDEN_WORDS = 40, 40
"""Number of words that the LLM sees, and of the next words that it should produce."""
MIN_WORDS = SHOWN_WORDS + HIDDEN_WORDS
"""Number of words that a document needs."""
MIN_QUESTION_WORDS = 20
"""Number of words that a question needs with its answer. Up to 40 words are shown, and the rest is to be produced."""
DEFAULT_DOCUMENTS = 50
"""Number of documents in the sample of each dataset, unless another number is given."""
SEED = 0
"""Seed of the sample. It does not change, so that two reports on one dataset ask about the same documents."""
MIN_RUN_WORDS = 10
"""Number of words in a row that are unlikely by chance."""

_WORD = re.compile(r"\w+")


class Continuation(LLMAnswer):
    """The continuation of a document by the LLM."""

    continuation: Text


def contamination(material: Material) -> Section:
    """Return how much of the documents and questions an LLM continues verbatim."""
    ask = _question(material)
    rows: list[list[Value]] = []
    for name, noun, size, texts in _texts(material):
        said = ask.ask(_items(texts), lambda _, answer: str(answer.continuation)).outcomes
        hidden = [" ".join(words) for _, words in texts]
        rows.append([name, f"{noun}s", size, *_figures(hidden, [said.get(number) for number in range(len(texts))])])
    longest = f"runs of {MIN_RUN_WORDS} words or more"
    heads = ("dataset", "texts", "in the dataset", "continued", "words in order", "by chance", "longest run", longest)
    documents_used = counted(material.queries or DEFAULT_DOCUMENTS, "document")
    note = (
        f"The LLM sees {SHOWN_WORDS} words of a document and continues it. Its text is compared with the next "
        f"{HIDDEN_WORDS} words. Words in order: the share of these words that it contains in the same order. By "
        "chance: the same share for the words of another text. The documents are a random sample of up to "
        f"{documents_used} of at least {MIN_WORDS} words from each dataset. The sample is the same each time. The text "
        "of a question has its reference answer after it, and the LLM sees the first half, at most "
        f"{SHOWN_WORDS} words. Questions of fewer than {MIN_QUESTION_WORDS} words are left out."
    )
    title = f"Texts that {material.runtime.setup.llm} continues verbatim"
    table = Table.of(heads, rows, title, note, name="contamination")
    tally = ask.tally
    kinds = f"; {tally.failures.total():,} had no usable answer ({listed_kinds(tally.failures)})"
    asked = f"{ask.chat.card.spec} was asked {tally.asked:,} × {PROMPT}{kinds if tally.failures else ''}."
    return Section("Contamination", [table], _lead(rows, tally.asked), [asked], name="contamination")


def contamination_plan(material: Material) -> Plan:
    """Return what the analysis would ask. Nothing is asked."""
    items = [item for _, _, _, texts in _texts(material) for item in _items(texts)]
    question = _question(material)
    example = question.example(items)
    needs = question.needs(items, material.runtime.setup)
    return Plan((PlanRow("contamination", (needs,)),), {PROMPT: example} if example else {})


def _question(material: Material) -> Ask:
    """Return the question to the LLM. Raises UserError if none was named."""
    setup = material.runtime.setup
    if not setup.llm:
        raise UserError("contamination needs an LLM: name one, as in llm (--llm smollm2)")
    chat = open_chat(resolve_llm(setup.llm, setup), material.runtime)
    chat = chat.about(*(dataset.label for dataset in material.datasets.values()))
    return Ask(chat, packaged_template("r2med.analysis", PROMPT), Continuation)


ShownHidden = tuple[list[str], list[str]]
"""The words of a text that an LLM sees, and those that it should produce."""


def _texts(material: Material) -> Iterator[tuple[str, str, int, list[ShownHidden]]]:
    """Yield a dataset, a kind of text, the number of such texts in the dataset, and those that an LLM continues."""
    count = material.queries or DEFAULT_DOCUMENTS
    for name, dataset in material.datasets.items():
        drawn = [(text[:SHOWN_WORDS], text[SHOWN_WORDS:]) for text in documents(dataset, count)]
        yield name, "document", len(dataset.corpus), drawn
        yield name, "question", len(dataset.queries), questions(dataset, count)


def _items(texts: Sequence[ShownHidden]) -> list[AskedItem]:
    return [AskedItem({"text": " ".join(shown), "words": str(len(hidden))}) for shown, hidden in texts]


def _lead(rows: Sequence[Sequence[Value]], asked: int) -> str:
    shares = [
        f"{max(known):.0%} of a dataset's {noun}"
        for noun in ("documents", "questions")
        if (known := [row[-1].value for row in rows if row[1] == noun and isinstance(row[-1], Estimate)])
    ]
    if shares:
        return f"At most {' and '.join(shares)} are continued with {MIN_RUN_WORDS} or more of their words in a row."
    why = "No text was continued" if asked else "No text is long enough"
    return f"{why}, so nothing is known."


def questions(dataset: Dataset, count: int) -> list[ShownHidden]:
    """Return a fixed random sample of questions with their answers, in two halves."""
    order = np.random.default_rng(SEED).permutation(len(dataset.queries)).tolist()
    texts = (f"{dataset.queries[place].text} {dataset.queries[place].answer or ''}".split() for place in order)
    long_enough = (text for text in texts if len(text) >= MIN_QUESTION_WORDS)
    halves = ((text, min(SHOWN_WORDS, len(text) // 2)) for text in long_enough)
    return [(text[:at], text[at : at + HIDDEN_WORDS]) for text, at in itertools.islice(halves, count)]


def documents(dataset: Dataset, count: int) -> list[list[str]]:
    """Return the first words of a fixed random sample of documents.

    Only documents of at least `MIN_WORDS` words count. A smaller sample is the beginning of a larger one.
    """
    order = np.random.default_rng(SEED).permutation(len(dataset.corpus)).tolist()
    texts = (dataset.corpus.text(row).split(maxsplit=MIN_WORDS)[:MIN_WORDS] for row in order)
    return list(itertools.islice((text for text in texts if len(text) == MIN_WORDS), count))


def _figures(hidden: Sequence[str], said: Sequence[str | None]) -> list[Value]:
    """Return the number of continued documents, and means over them."""
    others = [*hidden[1:], *hidden[:1]]
    answered = [(true, other, text) for true, other, text in zip(hidden, others, said, strict=True) if text]
    runs = np.array([longest_run(true, text) for true, _, text in answered], dtype=np.float64)
    same = np.array([same_words(true, text) for true, _, text in answered], dtype=np.float64)
    # One document alone has no other document to compare with.
    chance = [same_words(other, text) if len(hidden) > 1 else np.nan for _, other, text in answered]
    by_heart = (runs >= MIN_RUN_WORDS).astype(np.float64)
    return [
        len(answered),
        mean_interval(same),
        mean_interval(np.array(chance, dtype=np.float64)),
        mean_interval(runs, top=max((float(len(_words(text))) for text in hidden), default=1.0)),
        mean_interval(by_heart),
    ]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def longest_run(first: str, second: str) -> int:
    """Return the length of the longest run of words that two texts share."""
    a, b = _words(first), _words(second)
    return SequenceMatcher(None, a, b, autojunk=False).find_longest_match().size


def same_words(wanted: str, given: str) -> float:
    """Return the share of the wanted words that a text contains in their order (matching blocks)."""
    a, b = _words(wanted), _words(given)
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(1, len(a))
