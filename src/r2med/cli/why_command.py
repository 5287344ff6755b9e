"""What `r2med why` shows: an explanation of the score of one query of a record, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r2med.cli.generated import Shown

if TYPE_CHECKING:
    from r2med.evaluation.running.story import FoundDocument, RelevantDocument, Story
    from r2med.foundation.pages.page import Page, Table
    from r2med.foundation.text.highlight import Words

LETTERS = 480
"""Characters of a text that are shown."""
SHOWN = 3
"""Relevant passages that are shown at this length. Of further ones only the beginning is shown."""
FEWER_LETTERS = 120
QUESTION = "the question"


def show_story(story: Story) -> Shown:
    """Show the story of a query on one screen."""
    return Shown(_page(story), _value(story))


def _page(story: Story) -> Page:
    """Return the question, the generated texts, the relevant passages and their ranks."""
    from r2med.evaluation.measure import HEADLINE_MEASURE
    from r2med.evaluation.records.search_language import recorded_language
    from r2med.foundation.pages.page import Page, Paragraph, Section
    from r2med.foundation.text.highlight import Words

    record, query = story.record, story.query
    language = recorded_language([record.settings])
    title = f"{record.dataset.name} {query.id}"
    value = record.per_query[query.id][str(HEADLINE_MEASURE)]
    of_relevant = Words.of(" ".join(document.text for document in story.relevant), language=language)
    words = Words.of(query.text, story.generated, language)
    parts = [Paragraph.excerpt("question:", query.text, of_relevant, LETTERS)]
    parts += [Paragraph.excerpt("written:", text, of_relevant, LETTERS) for text in story.generated[:SHOWN]]
    parts += [Paragraph(f"failed: {name}, {kinds}", "strong") for name, kinds in _failures(story).items()]
    for number, document in enumerate(story.relevant):
        letters = LETTERS if number < SHOWN else FEWER_LETTERS
        label = f"relevant {document.id}, grade {document.grade}:"
        parts.append(Paragraph.excerpt(label, document.text, words, letters))
        for source, common in _shared(document, words).items():
            if common or source == QUESTION:
                parts.append(Paragraph(f"  shares with {source}: {', '.join(common) or 'nothing'}", "quiet"))
    parts += [
        Paragraph.excerpt(f"found {rank}. {found.id}, {_grade(found)}:", found.text, words, FEWER_LETTERS)
        for rank, found in enumerate(story.first, 1)
    ]
    about = f"{HEADLINE_MEASURE} {100 * value:.1f} · {record.display_name}"
    return Page(title, [Section(title, parts, aside=about, aside_tone=""), Section("", [_ranks(story)])], kind="why")


def _shared(document: RelevantDocument, words: Words) -> dict[str, list[str]]:
    """Return the words that a document shares with the question, and those that it shares with generated texts only."""
    from r2med.foundation.text.highlight import matches

    by_source: dict[str, dict[str, str]] = {"query": {}, "generated": {}, "both": {}}
    for match in matches(document.text, words):
        if not words.is_common(match.term):
            by_source[match.kind].setdefault(match.term, document.text[match.start : match.stop].lower())
    of_question = [*by_source["query"].values(), *by_source["both"].values()]
    return {QUESTION: of_question, "what was written alone": list(by_source["generated"].values())}


def _grade(found: FoundDocument) -> str:
    return "not judged" if found.grade is None else f"grade {found.grade}"


def _failures(story: Story) -> dict[str, Any]:
    """Return the stages whose calls for this query failed, each with the kinds of failure."""
    of_query = {stage.name: stage.failed.get(story.query.id) for stage in story.record.stages}
    return {name: kinds for name, kinds in of_query.items() if kinds}


def _ranks(story: Story) -> Table:
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    depth = story.record.settings.get("k", 0)
    beyond = "not found" if depth >= story.record.dataset.documents else f"> {depth}"
    rows = [(each.id, *(ranks.get(each.id, beyond) for ranks in story.ranks.values())) for each in story.relevant]
    return Table((Column("rank after"), *(Column(stage, "integer") for stage in story.ranks)), rows)


def _value(story: Story) -> dict[str, Any]:
    """Return the whole story for JSON."""
    record, query = story.record, story.query
    relevant = [
        {**vars(each), "ranks": {stage: ranks.get(each.id) for stage, ranks in story.ranks.items()}}
        for each in story.relevant
    ]
    return {
        "dataset": record.dataset.name,
        "system": record.display_name,
        "query": query.id,
        "question": query.text,
        "scores": dict(record.per_query[query.id]),
        "generated": list(story.generated),
        "failures": _failures(story),
        "relevant": relevant,
        "first": [vars(each) for each in story.first],
    }
