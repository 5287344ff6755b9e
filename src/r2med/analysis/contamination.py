"""Does an LLM know the corpus by heart? It sees the start of documents and must continue them word for word."""

from __future__ import annotations

import itertools
import re
from difflib import SequenceMatcher

import numpy as np

from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.ask.answers import LLMAnswer, Text
from r2med.core.errors import UserError
from r2med.data.dataset import Dataset
from r2med.pages.cells import Value
from r2med.pages.estimate import Estimate
from r2med.pages.page import Section, Table

SHOWN_WORDS, HIDDEN_WORDS = 40, 40
"""Number of words that the LLM sees, and of the next words that it should produce."""
DEFAULT_DOCUMENTS = 50
"""Number of documents per dataset, unless another number is given."""
MIN_RUN_WORDS = 10
"""Number of words in a row that are unlikely by chance."""

_WORD = re.compile(r"\w+")


class Continuation(LLMAnswer):
    """The continuation of a document by the LLM."""

    continuation: Text


def contamination(material: Material) -> Section:
    """Return how much of the documents an LLM continues verbatim."""
    if not material.runtime.setup.llm:
        raise UserError("contamination needs an LLM: name one, as in Setup(llm='smollm2')")
    rows: list[list[Value]] = []
    for name, dataset in material.datasets.items():
        drawn = _drawn(dataset, material.queries or DEFAULT_DOCUMENTS)
        fields = [{"text": " ".join(text[:SHOWN_WORDS]), "words": str(HIDDEN_WORDS)} for text in drawn]
        said = material.questions.ask(
            "continue", fields, lambda _: Continuation, lambda _, answer: str(answer.continuation)
        )
        hidden = [" ".join(text[SHOWN_WORDS : SHOWN_WORDS + HIDDEN_WORDS]) for text in drawn]
        others = hidden[1:] + hidden[:1]
        answered = [(true, other, text) for true, other, text in zip(hidden, others, said, strict=True) if text]
        runs = np.array([longest_run(true, text) for true, _, text in answered], dtype=np.float64)
        same = np.array([same_words(true, text) for true, _, text in answered], dtype=np.float64)
        chance = np.array([same_words(other, text) for _, other, text in answered], dtype=np.float64)
        by_heart = (runs >= MIN_RUN_WORDS).astype(np.float64)
        rows.append([name, len(answered), *map(mean_interval, (same, chance, runs, by_heart))])
    longest = f"runs of {MIN_RUN_WORDS} words or more"
    heads = ("dataset", "documents", "words in order", "by chance", "longest run", longest)
    note = (
        f"The LLM sees {SHOWN_WORDS} words of a document and continues it. Its text is compared with the next "
        f"{HIDDEN_WORDS} words. Words in order: the share of these words that it contains in the same order. By "
        "chance: the same share for the words of another document."
    )
    table = Table.of(
        heads, rows, f"Documents that {material.runtime.setup.llm} continues verbatim", note, name="contamination"
    )
    known = [row[-1].value for row in rows if isinstance(row[-1], Estimate)]
    most = f"{max(known, default=0):.0%} of a dataset's documents"
    lead = f"At most {most} are continued with {MIN_RUN_WORDS} or more of their words in a row."
    lead = lead if known else "No document was continued, so nothing is known."
    return Section("Contamination", [table], lead, list(material.questions.notes("continue")), name="contamination")


def _drawn(dataset: Dataset, count: int) -> list[list[str]]:
    """Return the words of `count` random documents that are long enough."""
    order = np.random.default_rng(0).permutation(len(dataset.corpus)).tolist()
    texts = (dataset.corpus.text(row).split() for row in order)
    return list(itertools.islice((text for text in texts if len(text) >= SHOWN_WORDS + HIDDEN_WORDS), count))


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
