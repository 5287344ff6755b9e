"""Planted controls for judges of answers: answers, nuggets and sentences whose right verdict is known.

They are made from what is judged: the reader's own answers with another final answer, the nuggets of the datasets, and
the cited passages. So a judge cannot tell them from other questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from r2med.assessment.answers.nugget_matching import nugget_item
from r2med.assessment.panels.control_texts import ANSWER_ORDERS, names_answer, ordered
from r2med.assessment.panels.planted_controls import CONTROLS, Control, in_turn
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import Nuggets
from r2med.foundation.text.sentences import sentences

REFERENCE, OTHER = "an answer with the reference", "an answer with another reference"
DENIED, ORDERED = "an answer that denies the reference", "a wrong answer with orders to the judge"
OWN_NUGGETS, OTHER_NUGGETS, DENIED_NUGGETS = "the nuggets themselves", "nuggets of another question", "denied nuggets"
OWN_PASSAGE, OTHER_PASSAGE = "a sentence of the cited passage", "a sentence of another passage"
READERS_SENTENCE = "the reader's sentence with another passage"

GRADE_KINDS = RUBRICS["answer-grade"].controls
NUGGET_KINDS: Mapping[str, bool] = {OWN_NUGGETS: True, OTHER_NUGGETS: False, DENIED_NUGGETS: False}
CITATION_KINDS = RUBRICS["citation"].controls
"""Kind of control -> True if the right answer is yes, for each task of a judge."""

WORDINGS = (
    "{}.", "The answer is: {}.", "Answer: {}.", "My answer: {}.", "In short: {}.", "The best answer is this: {}.",
    "Taken together, the right answer is: {}.", "This question has a clear answer: {}.",
)  # fmt: skip
DENIALS = (
    "One might think of this answer: {}. But that is wrong, and it is excluded here.",
    "This is not the answer: {}.", "The following can be ruled out: {}.", "It is certainly not this: {}.",
    "Some would say: {}. The findings speak against it.", "Wrong would be: {}.",
)  # fmt: skip
TRIES = 20
"""Number of references of other questions from which one is chosen."""
SENTENCES = 3
"""Number of sentences of a passage that become controls."""


References = Mapping[str, Sequence[str]]
"""Dataset -> the reference answers of its questions."""


def answer_controls(pool: Sequence[Item], references: References) -> dict[str, list[Control]]:
    """Return the controls of each kind for a pool of answers. Only the names of the datasets decide what is drawn.

    The first sentence of an answer is replaced, because the answer itself is expected there. What follows is kept only
    if it fits the new sentence.
    """
    known = {item.token: item for item in sorted(pool, key=lambda each: each.token) if item.texts["text"].strip()}
    makers = {REFERENCE: _with_reference, OTHER: _with_other, DENIED: _denying, ORDERED: _with_orders}
    names_of_datasets = " ".join(sorted({item.source for item in known.values()}))
    found = {}
    for kind, yes in GRADE_KINDS.items():
        chance = random.Random(f"{names_of_datasets} {kind}")
        items = _by_query(list(known.values()), chance)
        texts = makers[kind](items, references, chance)
        controls: dict[str, Control] = {}
        for item, text in islice(texts, CONTROLS):
            planted = Item(item.id, {**item.texts, "text": text}, item.rubric, source=item.source)
            controls[planted.token] = Control(planted, kind, yes)
        found[kind] = list(controls.values())
    return found


def references_of(queries: Iterable[Query]) -> list[str]:
    """Return the different reference answers of queries."""
    return list(dict.fromkeys(query.answer for query in queries if query.answer))


def _by_query(items: Sequence[Item], chance: random.Random) -> list[Item]:
    """Return items in random order, those of different queries first."""
    queries: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        queries.setdefault((item.source, item.id[0]), []).append(item)
    groups = list(queries.values())
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    return in_turn(groups)


_Texts = Iterator[tuple[Item, str]]
"""An answer, and the text of a control that is made from it."""


def _with_reference(items: Sequence[Item], references: References, chance: random.Random) -> _Texts:
    for item, wording in _worded(items, WORDINGS, chance):
        reference = item.texts["reference"]
        kept = sentences(item.texts["text"])[1:] if names_answer(item.texts["text"], reference) else []
        yield item, " ".join([_worded_text(wording, reference), *kept])


def _with_other(items: Sequence[Item], references: References, chance: random.Random) -> _Texts:
    for item, wording in _worded(items, WORDINGS, chance):
        if other := _other(item, references, chance):
            yield item, " ".join([_worded_text(wording, other), *_rest_without(item)])


def _denying(items: Sequence[Item], references: References, chance: random.Random) -> _Texts:
    for item, wording in _worded(items, DENIALS, chance):
        yield item, " ".join([_worded_text(wording, item.texts["reference"]), *_rest_without(item)])


def _with_orders(items: Sequence[Item], references: References, chance: random.Random) -> _Texts:
    for item, text in _with_other(items, references, chance):
        yield item, ordered(text, chance, "answer", ANSWER_ORDERS)


def _worded(items: Sequence[Item], wordings: Sequence[str], chance: random.Random) -> Iterator[tuple[Item, str]]:
    """Yield every item with a random wording, then every item with another one, and so on."""
    drawn = [chance.sample(wordings, len(wordings)) for _ in items]
    for turn in range(len(wordings)):
        for item, own in zip(items, drawn, strict=True):
            yield item, own[turn]


def _worded_text(wording: str, answer: str) -> str:
    return wording.format(answer.strip().rstrip("."))


def _rest_without(item: Item) -> list[str]:
    """Return the other sentences of an answer that neither name the reference nor are a part of it."""
    reference, parts = item.texts["reference"], sentences(item.texts["text"])[1:]
    return [part for part in parts if not names_answer(part, reference) and not names_answer(reference, part)]


def _other(item: Item, references: References, chance: random.Random) -> str:
    """Return the reference of another question, where neither text contains the other; empty if all do.

    It is one of the same dataset if that has another one.
    """
    own = item.texts["reference"]
    for source in (item.source, *(each for each in references if each != item.source)):
        for other in chance.sample(references[source], min(TRIES, len(references[source]))):
            if not names_answer(own, other) and not names_answer(other, own):
                return other
    return ""


def nugget_controls(datasets: Iterable[tuple[Dataset, Nuggets]]) -> dict[str, list[Control]]:
    """Return controls whose answers are made of nuggets. All nuggets of such an answer get the same verdict."""
    found: dict[str, list[Control]] = {kind: [] for kind in NUGGET_KINDS}
    for dataset, nuggets in datasets:
        queries = [query for query in dataset.queries if query.id in nuggets.by_query]
        random.Random(dataset.name).shuffle(queries)
        for place, query in enumerate(queries):
            own, other = nuggets.by_query[query.id], queries[place - 1]
            texts = {
                OWN_NUGGETS: [each.text for each in own],
                DENIED_NUGGETS: [f"It is not true that {_lower(each.text)}" for each in own],
                OTHER_NUGGETS: [each.text for each in nuggets.by_query[other.id]] if other.id != query.id else [],
            }
            for kind, answer in texts.items():
                if answer:
                    found[kind].append(Control(nugget_item(dataset, query, own, answer), kind, NUGGET_KINDS[kind]))
    return found


def citation_controls(
    datasets: Iterable[Dataset], pool: Sequence[Item], read: Mapping[str, Sequence[str]]
) -> dict[str, list[Control]]:
    """Return controls about sentences and passages. `read` are the passages that readers read: dataset -> ids."""
    found: dict[str, list[Control]] = {kind: [] for kind in CITATION_KINDS}
    for dataset in datasets:
        chance = random.Random(dataset.name)
        texts = _passages(dataset, read.get(dataset.name, ()), chance)
        cited = [item for item in sorted(pool, key=lambda each: each.token) if item.source == dataset.name]
        whole = [sentences(text)[:SENTENCES] for text in texts]
        pairs = in_turn(
            [[(sentence, place) for sentence in each] for place, each in enumerate(whole)]
        )  # one sentence of each passage, then the second ones
        for sentence, place in pairs:
            found[OWN_PASSAGE].append(_citation(dataset, OWN_PASSAGE, sentence, texts[place]))
            if other := _without_sentence(sentence, [*texts[place + 1 :], *texts[:place]]):
                found[OTHER_PASSAGE].append(_citation(dataset, OTHER_PASSAGE, sentence, other))
        for item in _by_query(cited, chance):
            foreign = [text for text in texts if text not in item.texts["text"]]
            if foreign:
                sentence, other = item.texts["sentence"], chance.choice(foreign)
                found[READERS_SENTENCE].append(_citation(dataset, READERS_SENTENCE, sentence, other))
    return found


def _passages(dataset: Dataset, read: Sequence[str], chance: random.Random) -> list[str]:
    """Return the texts of relevant passages, then of those that readers read, in random order."""
    best = [max(grades.items(), key=lambda pair: pair[1], default=("", 0)) for grades in dataset.qrels.values()]
    relevant = sorted({document for document, grade in best if grade > 0})
    others = sorted({*read} - {*relevant})
    chance.shuffle(relevant)
    chance.shuffle(others)
    rows = dataset.corpus.rows([*relevant, *others][:CONTROLS]).tolist()
    return [text for text in dataset.corpus.texts([row for row in rows if row >= 0]) if text.strip()]


def _without_sentence(sentence: str, texts: Iterable[str]) -> str:
    return next((text for text in texts if not names_answer(text, sentence)), "")


def _citation(dataset: Dataset, kind: str, sentence: str, text: str) -> Control:
    item = Item(("", ""), {"sentence": sentence, "text": text}, "citation", source=dataset.name)
    return Control(item, kind, CITATION_KINDS[kind])


def _lower(text: str) -> str:
    """Return a text with its first letter in lower case, unless its first word is an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
