"""Does an LLM know the corpus by heart? It is shown the beginning of documents and asked to go on word for word."""

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

SHOWN, HIDDEN = 40, 40
"""Words that are shown, and words after them that are looked for."""
DOCUMENTS = 50
"""Documents of a dataset, unless another number is given."""
BY_HEART = 10
"""Words in a row that are hardly met by chance."""

_WORD = re.compile(r"\w+")


class Continuation(LLMAnswer):
    """How a document goes on, by heart."""

    continuation: Text


def contamination(material: Material) -> Section:
    """Return how much of documents' texts an LLM completes verbatim."""
    if not material.runtime.setup.llm:
        raise UserError("an LLM has to be asked: name one with --llm, as in --llm smollm2")
    rows: list[list[Value]] = []
    for name, dataset in material.datasets.items():
        drawn = _drawn(dataset, material.queries or DOCUMENTS)
        fields = [{"text": " ".join(text[:SHOWN]), "words": str(HIDDEN)} for text in drawn]
        said = material.questions.ask(
            "continue", fields, lambda _: Continuation, lambda _, answer: str(answer.continuation)
        )
        hidden = [" ".join(text[SHOWN : SHOWN + HIDDEN]) for text in drawn]
        others = hidden[1:] + hidden[:1]
        told = [(true, other, text) for true, other, text in zip(hidden, others, said, strict=True) if text]
        runs = np.array([longest_run(true, text) for true, _, text in told], dtype=np.float64)
        same = np.array([same_words(true, text) for true, _, text in told], dtype=np.float64)
        chance = np.array([same_words(other, text) for _, other, text in told], dtype=np.float64)
        by_heart = (runs >= BY_HEART).astype(np.float64)
        rows.append([name, len(told), *map(mean_interval, (same, chance, runs, by_heart))])
    heads = ("dataset", "documents", "words in order", "by chance", "longest run", f"runs of {BY_HEART} words or more")
    note = (
        f"After {SHOWN} words of a document the LLM goes on; the next {HIDDEN} words of the original are looked for. "
        "Words in order: the share of them in the continuation, in their order; by chance: those of another document."
    )
    table = Table.of(heads, rows, f"What {material.runtime.setup.llm} completes verbatim", note, name="contamination")
    known = [row[-1].value for row in rows if isinstance(row[-1], Estimate)]
    most = f"{max(known, default=0):.0%} of a dataset's documents"
    lead = f"At most {most} are continued with {BY_HEART} or more of their words in a row."
    lead = lead if known else "No document was continued: nothing is known."
    return Section("Contamination", [table], lead, list(material.questions.notes("continue")), name="contamination")


def _drawn(dataset: Dataset, count: int) -> list[list[str]]:
    """Return the words of so many documents, drawn at random among those that are long enough."""
    order = np.random.default_rng(0).permutation(len(dataset.corpus)).tolist()
    texts = (dataset.corpus.text(row).split() for row in order)
    return list(itertools.islice((text for text in texts if len(text) >= SHOWN + HIDDEN), count))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def longest_run(first: str, second: str) -> int:
    """Return how many words in a row two texts share at most."""
    a, b = _words(first), _words(second)
    return SequenceMatcher(None, a, b, autojunk=False).find_longest_match().size


def same_words(wanted: str, told: str) -> float:
    """Return the share of the wanted words that are told in their order (matching blocks)."""
    a, b = _words(wanted), _words(told)
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(1, len(a))
