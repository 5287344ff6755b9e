"""The tools of an agent that returns a ranking: how they are offered, and how calls are read, native or as tags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from r2med.foundation.text.unicode import to_unicode
from r2med.models.llm.chat import ToolCall

Status = Literal[
    "ok",
    "unknown_tool",  # No tool has this name.
    "bad_arguments",  # The arguments are not JSON, or not those of the tool.
    "unknown_ids",  # No search returned a document with one of these ids.
    "repeated",  # The query was searched before.
    "limit",  # The limit of searches or turns is reached.
    "no_call",  # A turn without a call.
    "cut",  # The token limit cut the turn before its call was complete.
    "no_room",  # The result did not fit the context of the model.
    "ignored",  # A call after the agent had finished.
]
"""What became of a call, or of a turn without one."""

MAX_DOCUMENTS = 50
"""Maximum number of documents that a search returns to the model."""

_ID_LIST = {"type": "array", "items": {"type": "string"}}


def tools(topk: int, most: int) -> str:
    """Return the tools as JSON text. `topk` is the default number of documents of a search, `most` the largest."""
    return json.dumps(
        [
            _tool(
                "search",
                "Search the collection. Returns passages with their ids, the best match first. A passage that was "
                "shown before is named without its text.",
                ["query"],
                query=("string", "what to search for"),
                k=("integer", f"number of passages, from 1 to {most}; {topk} if left out"),
            ),
            _tool(
                "think",
                "Write down a thought, such as what is known, what is missing and what to search for next.",
                ["thought"],
                thought=("string", "the thought"),
            ),
            _tool(
                "get_document",
                "Read the whole text of a passage that a search returned.",
                ["id"],
                id=("string", "the id of the passage"),
            ),
            _tool(
                "finish",
                "End the task with the relevant passages.",
                ["ids"],
                ids=(_ID_LIST, "the ids of all relevant passages, the most relevant first"),
            ),
        ]
    )


def _tool(name: str, description: str, required: Sequence[str], **fields: tuple[Any, str]) -> dict[str, Any]:
    properties = {
        field: {**({"type": kind} if isinstance(kind, str) else kind), "description": meaning}
        for field, (kind, meaning) in fields.items()
    }
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "parameters": parameters}


ToolName = Literal["search", "think", "get_document", "finish"]

TEXT_ARGUMENTS: Mapping[ToolName, str] = {
    "search": "query",
    "think": "thought",
    "get_document": "id",
    "finish": "ids",
}
"""Tool -> its argument that must be there."""

TAGGED = tuple(name for name in TEXT_ARGUMENTS if name != "think")
"""The tools that have a tag, for models without tool calls. These write thoughts as text."""


class BadCall(Exception):  # noqa: N818 - reads as what came
    """A call that cannot be carried out: its status, and the answer that the model gets."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status: Status = status


def tool_of(call: ToolCall) -> ToolName:
    """Return the tool of a call. Raises BadCall if it does not exist."""
    for name in TEXT_ARGUMENTS:
        if name == call.name:
            return name
    raise BadCall("unknown_tool", f"There is no tool {call.name[:40]!r}. The tools are {', '.join(TEXT_ARGUMENTS)}.")


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call. Raises BadCall if the tool does not exist or they cannot be read."""
    wanted = TEXT_ARGUMENTS[tool_of(call)]
    arguments = parsed(call.arguments)
    if arguments is None:
        raise BadCall("bad_arguments", f"The arguments of {call.name} are not a JSON object with {wanted!r}.")
    if wanted not in arguments:
        raise BadCall("bad_arguments", f"{call.name} needs the argument {wanted!r}.")
    if call.name != "finish" and not (isinstance(arguments[wanted], str) and arguments[wanted].strip()):
        raise BadCall("bad_arguments", f"The argument {wanted!r} of {call.name} must be a text that is not empty.")
    return arguments


def parsed(arguments: str) -> dict[str, Any] | None:
    """Return the arguments of a call as an object; None if they are not one."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    # Escapes can write half a character, which no file of a record can hold.
    return {to_unicode(name): to_unicode(each) if isinstance(each, str) else each for name, each in value.items()}


def search_of(arguments: Mapping[str, Any], topk: int) -> tuple[str, int]:
    """Return the query of a search and the number of documents. Raises BadCall if it is not a number above 0."""
    count = arguments.get("k")
    if count is None or count == "":
        return " ".join(arguments["query"].split()), topk
    # Models write numbers as text, too.
    number = re.fullmatch(r"\s*(\d{1,6})(?:\.0+)?\s*", str(count)) if not isinstance(count, bool) else None
    if number is None or not int(number[1]):
        raise BadCall("bad_arguments", "The argument 'k' of search must be a whole number above 0.")
    return " ".join(arguments["query"].split()), int(number[1])


def ids_of(arguments: Mapping[str, Any]) -> list[str]:
    """Return the ids of a call of finish, each once. Raises BadCall if they are not a list of ids."""
    ids = arguments["ids"]
    if isinstance(ids, str):  # A list in a text, or ids with commas or spaces between them.
        ids = re.findall(r"[^\s,;\"'\[\]]+", ids)
    if not isinstance(ids, list) or not all(isinstance(each, str | int) for each in ids):
        raise BadCall("bad_arguments", "The argument 'ids' of finish must be a list of ids.")
    return list(dict.fromkeys(label(to_unicode(str(each))) for each in ids))


def label(text: str) -> str:
    """Return an id in its plain form. Models write d3 also as [d3], D3 or 3."""
    plain = text.strip().strip("[]\"'").casefold()
    return f"d{plain}" if plain.isdecimal() else plain


STOP_TAGS = tuple(f"</{name}>" for name in TAGGED)
"""Where a turn of a model without tool calls ends."""

_CLOSED = re.compile(rf"</({'|'.join(TAGGED)})>")
_OPENED = re.compile(rf"<({'|'.join(TAGGED)})(?:\s+k\s*=\s*[\"']?(\w+)[\"']?)?\s*>")
_MENTIONED = frozenset({"and", "your query", *TEXT_ARGUMENTS.values()})
"""Texts between tags that are only mentioned, as in the prompt."""


def tagged_call(text: str, finish_reason: str) -> tuple[str, ToolCall | None]:
    """Return a text up to its first call, and the call; None if it makes no call.

    A server leaves out the tag at which it stopped, so it is put back, unless the token limit cut the text.
    """
    if closed := _CLOSED.search(text):
        text = text[: closed.end()]
    elif (opened := list(_OPENED.finditer(text))) and finish_reason != "length":
        text = f"{text}</{opened[-1][1]}>"
        closed = _CLOSED.search(text)
    if closed is None:
        return text, None
    openings = [each for each in _OPENED.finditer(text) if each[1] == closed[1]]
    content = text[openings[-1].end() : text.rindex("</")].strip() if openings else ""
    if not openings or content.casefold() in _MENTIONED:
        return text, None
    call = ToolCall("", closed[1], "")
    arguments: dict[str, Any] = {TEXT_ARGUMENTS[tool_of(call)]: content}
    if count := openings[-1][2]:
        arguments["k"] = count
    return text, replace(call, arguments=json.dumps(arguments))
