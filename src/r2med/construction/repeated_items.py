"""Detect repeated ids and questions: the hashes to compare items by, and the error if two sources share an id."""

from __future__ import annotations

from r2med.construction.items import ITEMS, Item, SourcePage, SourceQuestion
from r2med.construction.step import Step, Streams
from r2med.core.errors import UserError
from r2med.store import digest


def key_mark(key: str) -> bytes:
    """Return a hash of fixed size for a key, since a corpus may have millions of keys."""
    return digest(key).encode()[:16]


def content_mark(item: Item) -> bytes:
    """Return a hash of the content of a question or page; empty for items that only steps create."""
    return (
        key_mark(f"{item.text}\t{getattr(item, 'answer', '')}")
        if isinstance(item, SourceQuestion | SourcePage)
        else b""
    )


def question_mark(item: SourceQuestion) -> bytes:
    """Return a hash that repeated questions share: of text, answer and options, in lower case."""
    parts = (item.text, item.answer, *sorted(item.options))
    return key_mark("\t".join(" ".join(part.lower().split()) for part in parts))


def earlier_items(step: Step, streams: Streams) -> dict[bytes, bytes]:
    """Return the ids that earlier sources of a step's stream used, each with a hash of the item's content."""
    if not step.adds:
        return {}
    return {key_mark(item.key): content_mark(item) for item in streams.read(step.writes, ITEMS[step.writes])}


def id_clash(step: Step, streams: Streams, item: Item) -> UserError:
    """Return the error for an id that two sources give to different items. Judgements could not distinguish them."""
    earlier = next(each for each in streams.read(step.writes, ITEMS[step.writes]) if each.key == item.key)
    where = getattr(earlier, "source", "") or "an earlier source"
    example = f"{str(step).removesuffix(')')}, prefix=b-)"
    return UserError(
        f"{step}: the id {item.key!r} already belongs to another item, from {where}: write {example} in the plan"
    )
