"""Ids and questions that come twice: what two items are compared by, and the error if two sources share an id."""

from __future__ import annotations

from r2med.construction.items import ITEMS, Item, Question, SourcePage
from r2med.construction.step import Step, Streams
from r2med.core.errors import UserError
from r2med.store import digest


def key_mark(key: str) -> bytes:
    """Return a hash of a fixed size instead of a key: a corpus of millions has millions of them."""
    return digest(key).encode()[:16]


def content_mark(item: Item) -> bytes:
    """Return a hash of what a question or a page says; empty for items that only steps make."""
    return key_mark(f"{item.text}\t{getattr(item, 'answer', '')}") if isinstance(item, Question | SourcePage) else b""


def question_mark(item: Question) -> bytes:
    """Return what two questions share if one repeats the other: text, answer and options, whatever their case."""
    parts = (item.text, item.answer, *sorted(item.options))
    return key_mark("\t".join(" ".join(part.lower().split()) for part in parts))


def earlier_items(step: Step, streams: Streams) -> dict[bytes, bytes]:
    """Return the ids that earlier sources of a step's stream took, each with a hash of what it names."""
    if not step.adds:
        return {}
    return {key_mark(item.key): content_mark(item) for item in streams.read(step.writes, ITEMS[step.writes])}


def id_clash(step: Step, streams: Streams, item: Item) -> UserError:
    """Return the error for an id that two sources give to different items: judgements could not tell them apart."""
    earlier = next(each for each in streams.read(step.writes, ITEMS[step.writes]) if each.key == item.key)
    where = getattr(earlier, "source", "") or "an earlier source"
    example = f"{str(step).removesuffix(')')}, prefix=b-)"
    return UserError(f"{step}: the id {item.key!r} belongs to another item, of {where}: write {example} in the plan")
