"""A conversation of Inspect's model as a trace, as our own agents leave it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from r2med.foundation.text.unicode import to_unicode
from r2med.systems.agents.agent_state import TRACE_FORMAT

_BRACKETS = re.compile(r"\[([^\[\]]*)\]|【([^【】]*)】")
_MAX_MARK = 9999
"""The largest number of a citation."""


def trace_of_messages(messages: Sequence[Any], completion: str) -> dict[str, Any]:
    """Return the trace of a conversation. It has no answer if it ends with a call of a tool."""
    results = {message.tool_call_id: message.text for message in messages if message.role == "tool"}
    said = [message for message in messages if message.role == "assistant"]
    turns = [_turn(call, results.get(call.id, "")) for message in said for call in message.tool_calls or ()]
    returned = list(dict.fromkeys(hit["id"] for turn in turns for hit in turn["documents"] or ()))
    answer = "" if said and said[-1].tool_calls else to_unicode(completion).strip()
    text, cited = numbered_citations(answer, returned)
    steps = {
        "returned": returned,
        "shown": list(dict.fromkeys(document for turn in turns for document in turn["shown"])),
        "opened": list(dict.fromkeys(document for turn in turns for document in turn["opened"])),
        "cited": cited,
    }
    searches = sum(turn["documents"] is not None for turn in turns)
    total = {"turns": len(turns) + 1, "searches": searches, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0}
    return {
        **{"format": TRACE_FORMAT, "prompt": "", "turns": turns, "text": text, "failure": None},
        **{"steps": steps, "confidence": None, "total": total},
    }


def _turn(call: Any, result: str) -> dict[str, Any]:
    """Return a call of search or get_document as a turn. What was opened was also shown."""
    arguments = {name: to_unicode(str(value)) for name, value in call.arguments.items()}
    found = [to_unicode(str(row["docid"])) for row in _rows(result) if "docid" in row]
    turn = {"text": f"{call.function}({json.dumps(arguments)[:4000]})", "information": "", "notice": ""}
    if call.function == "search":
        hits = [{"id": document, "score": float(len(found) - place)} for place, document in enumerate(found)]
        return {**turn, "query": arguments.get("query", ""), "documents": hits, "shown": found, "opened": []}
    return {**turn, "query": "", "documents": None, "shown": found, "opened": found}


def _rows(result: str) -> list[Mapping[str, Any]]:
    """Return the rows of the result of a tool. A call that failed has none."""
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return []
    return [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]


def numbered_citations(text: str, returned: Sequence[str]) -> tuple[str, list[str]]:
    """Return an answer whose citations are numbers of returned documents, and the documents that it cites.

    A citation is a list in brackets of ids without white space that have a digit, as [Text-106, 50344-1]. One that was
    not returned gets a number that no returned document has, so it counts as a citation of nothing.
    """
    numbers = {document: number for number, document in enumerate(returned, 1)}
    cited: dict[str, None] = {}

    def numbered(match: re.Match[str]) -> str:
        parts = [part.strip() for part in re.split(r"[,;]", match[1] if match[1] is not None else match[2])]
        if not all(part in numbers or re.fullmatch(r"\S*\d\S*", part) for part in parts):
            return match[0]
        for part in parts:
            if part in numbers:
                cited[part] = None
            else:
                numbers.setdefault(part, len(numbers) + 1)
        return f"[{', '.join(str(min(numbers[part], _MAX_MARK)) for part in parts)}]"

    return _BRACKETS.sub(numbered, text), list(cited)
