"""Leave out items with a repeated id or question, and report an id that two sources give to different items."""

from __future__ import annotations

from r2med.construction.items import ITEMS, Rejected, SourcePage, SourceQuestion, StreamItem
from r2med.construction.step import Step, Streams
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import text_digest

REPEATED_ID = "repeated id"


def key_mark(key: str) -> bytes:
    """Return a digest of fixed size for a key, since a corpus may have millions of keys."""
    return text_digest(key)[:16]


def content_mark(item: StreamItem) -> bytes:
    """Return a digest of the content of a question or page; empty for items that only steps create."""
    return (
        key_mark(f"{item.text}\t{getattr(item, 'answer', '')}")
        if isinstance(item, SourceQuestion | SourcePage)
        else b""
    )


def question_mark(item: SourceQuestion) -> bytes:
    """Return a digest that repeated questions share: of text, answer and options, in lower case."""
    parts = (item.text, item.answer, *sorted(item.options))
    return key_mark("\t".join(" ".join(part.lower().split()) for part in parts))


class KnownItems:
    """The ids and questions of a step's stream so far. An item that repeats one of them is left out."""

    def __init__(self, step: Step, streams: Streams) -> None:
        self._step, self._streams = step, streams
        earlier = streams.read(step.writes, ITEMS[step.writes]) if step.adds else ()
        self._seen = {key_mark(item.key): content_mark(item) for item in earlier}
        self._asked = {question_mark(each): each.id for each in streams.questions()} if step.adds else {}

    def checked(self, item: StreamItem) -> StreamItem | Rejected:
        """Return a new item, rejected if it is repeated. Raises UserError if its id belongs to a different item."""
        mark = key_mark(item.key)
        if mark in self._seen:
            if self._seen[mark] not in (b"", content_mark(item)):
                raise id_clash(self._step, self._streams, item)
            return Rejected.of(item, REPEATED_ID)
        self._seen[mark] = b""  # an id that one source repeats is left out, whatever its content
        if isinstance(item, SourceQuestion):
            first = self._asked.setdefault(question_mark(item), item.id)
            if first != item.id:
                return Rejected.of(item, "repeated question", f"of {first}")
        return item


def id_clash(step: Step, streams: Streams, item: StreamItem) -> UserError:
    """Return the error for an id that two sources give to different items. Judgements could not distinguish them."""
    earlier = next(each for each in streams.read(step.writes, ITEMS[step.writes]) if each.key == item.key)
    where = getattr(earlier, "source", "") or "an earlier source"
    example = f"{str(step).removesuffix(')')}, prefix=b-)"
    return UserError(
        f"{step}: the id {item.key!r} already belongs to another item, from {where}: write {example} in the plan"
    )
