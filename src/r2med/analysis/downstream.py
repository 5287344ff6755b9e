"""Do better rankings give better answers? The answer is in the records of `r2med answer`; no LLM is asked."""

from __future__ import annotations

from r2med.analysis.material import Material
from r2med.data.given_data import data_words
from r2med.evaluation.comparison.answer_worth import ALL_DATASETS, worth, worth_tables
from r2med.evaluation.measure.measures import ANSWER_FAMILIES
from r2med.evaluation.records.answer_collection import MAIN_MEASURE, AnswerCollection, collect_answers
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.page import Section
from r2med.foundation.text.terminal_text import quoted


def downstream(material: Material) -> Section:
    """Return what retrieval is worth to the answers of each reader, and how the two go together across systems."""
    collection = _collected(material)
    measure = material.measure if material.measure in ANSWER_FAMILIES else MAIN_MEASURE
    tables = worth_tables(collection, measure)
    notes = [f"{notice}." for notice in collection.notices]
    return Section("Downstream answers", tables, _lead(collection, measure), notes, name="downstream")


def _collected(material: Material) -> AnswerCollection:
    read = collect_answers(material.systems, material.results)
    if not material.data:
        return read
    kept = tuple(each for each in read if each.record.dataset.name in material.data_names)
    if not kept:
        words = data_words(material.data)
        raise UserError(
            f"there are no answer records of {', '.join(words)} in {material.results}: make some with r2med "
            f"answer bm25 --reader LLM --data {quoted(','.join(words))}"
        )
    return AnswerCollection(kept, read.notices)


def _lead(collection: AnswerCollection, measure: str) -> str:
    """Return a sentence about the system and reader with the largest gain."""
    found = worth(collection, measure)
    datasets = {each.dataset for each in found}
    whole = [each for each in found if each.dataset == ALL_DATASETS or len(datasets) == 1]
    gained = [(each.gain.value, each) for each in whole or found if each.gain]
    if not gained:
        return "No system was read both with and without its passages."
    points, best = max(gained, key=lambda pair: pair[0])
    assert best.gain is not None
    interval = f" (95 % interval {best.gain.interval('+.1f')})" if best.gain.low is not None else ""
    closed = f", which closes {best.share.value:.0%} of the gap to the relevant passages" if best.share else ""
    return f"The passages of {best.name} change {measure} by {points:+.1f} points{interval}{closed}."
