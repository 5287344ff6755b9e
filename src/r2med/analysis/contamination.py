"""Does an LLM know the dataset by heart? It sees the start of a text and must continue it word for word.

The texts are documents of the corpus, and questions with their reference answers. They are a fixed random sample, or
all on request. Texts that are too short are left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.data.dataset import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Section, Table
from r2med.foundation.text.plurals import counted
from r2med.models.ask.answers import LLMAnswer, Text
from r2med.models.ask.ask import AskedItem

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
    """Return how much of the documents an LLM continues verbatim."""
    if not material.runtime.setup.llm:
        raise UserError("contamination needs an LLM: name one, as in ", Setting("Setup", llm="smollm2"))
    rows: list[list[Value]] = []
    asked: list[list[Value]] = []
    used = 0
    count = None if material.all_documents else material.queries or DEFAULT_DOCUMENTS
    for name, dataset in material.datasets.items():
        drawn = [(text[:SHOWN_WORDS], text[SHOWN_WORDS:]) for text in documents(dataset, count)]
        used += len(drawn)
        rows.append([name, len(dataset.corpus), *_continued(material, f"{name} document", drawn)])
        asked.append([name, len(dataset.queries), *_continued(material, f"{name} question", questions(dataset, count))])
    longest = f"runs of {MIN_RUN_WORDS} words or more"
    heads = (
        "dataset",
        "documents in corpus",
        "documents continued",
        "words in order",
        "by chance",
        "longest run",
        longest,
    )
    note = (
        f"The LLM sees {SHOWN_WORDS} words of a document and continues it. Its text is compared with the next "
        f"{HIDDEN_WORDS} words. Words in order: the share of these words that it contains in the same order. By "
        f"chance: the same share for the words of another document. {_selection(material)}"
    )
    llm = material.runtime.setup.llm
    table = Table.of(heads, rows, f"Documents that {llm} continues verbatim", note, name="contamination")
    question_heads = ("dataset", "queries", "questions continued", *heads[3:])
    question_note = (
        "As above, for the text of a question with its reference answer after it. The LLM sees the first half, at most "
        f"{SHOWN_WORDS} words. Texts of fewer than {MIN_QUESTION_WORDS} words are left out."
    )
    title = f"Questions and answers that {llm} continues verbatim"
    of_questions = Table.of(question_heads, asked, title, question_note, name="contamination-questions")
    shares = [
        f"{max(known):.0%} of a dataset's {noun}"
        for noun, part in (("documents", rows), ("questions", asked))
        if (known := [row[-1].value for row in part if isinstance(row[-1], Estimate)])
    ]
    lead = f"At most {' and '.join(shares)} are continued with {MIN_RUN_WORDS} or more of their words in a row."
    if not shares:
        why = "No text was continued" if used else f"No document has {MIN_WORDS} words, which are needed"
        lead = f"{why}, so nothing is known."
    notes = list(material.questions.notes("continue"))
    return Section("Contamination", [table, of_questions], lead, notes, name="contamination")


ShownHidden = tuple[list[str], list[str]]
"""The words of a text that an LLM sees, and those that it should produce."""


def _continued(material: Material, kind: str, texts: Sequence[ShownHidden]) -> list[Value]:
    """Ask an LLM to continue texts, and return the figures of its continuations. `kind` names them in traces."""
    items = [
        AskedItem(f"{kind} {number}", {"text": " ".join(shown), "words": str(len(hidden))})
        for number, (shown, hidden) in enumerate(texts, 1)
    ]
    said = material.questions.ask("continue", items, Continuation, lambda _, answer: str(answer.continuation))
    return _figures([" ".join(hidden) for _, hidden in texts], said)


def questions(dataset: Dataset, count: int | None) -> list[ShownHidden]:
    """Return a fixed random sample of questions with their answers, in two halves; all of them if `count` is None."""
    size = len(dataset.queries)
    order = range(size) if count is None else np.random.default_rng(SEED).permutation(size).tolist()
    texts = (f"{dataset.queries[place].text} {dataset.queries[place].answer or ''}".split() for place in order)
    long_enough = (text for text in texts if len(text) >= MIN_QUESTION_WORDS)
    halves = ((text, min(SHOWN_WORDS, len(text) // 2)) for text in long_enough)
    return [(text[:at], text[at : at + HIDDEN_WORDS]) for text, at in itertools.islice(halves, count)]


def documents(dataset: Dataset, count: int | None) -> list[list[str]]:
    """Return the first words of a fixed random sample of documents; those of all documents if `count` is None.

    Only documents of at least `MIN_WORDS` words count. A smaller sample is the beginning of a larger one.
    """
    size = len(dataset.corpus)
    order = range(size) if count is None else np.random.default_rng(SEED).permutation(size).tolist()
    texts = (dataset.corpus.text(row).split(maxsplit=MIN_WORDS)[:MIN_WORDS] for row in order)
    return list(itertools.islice((text for text in texts if len(text) == MIN_WORDS), count))


def _selection(material: Material) -> str:
    """Return a sentence that says which documents were used."""
    if material.all_documents:
        return f"All documents of at least {MIN_WORDS} words were used."
    count = counted(material.queries or DEFAULT_DOCUMENTS, "document")
    return (
        f"The documents are a random sample of up to {count} of at least {MIN_WORDS} words from each dataset. The "
        "sample is the same each time."
    )


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
