"""The tools of an agent that ranks or answers: how they are offered, and how calls are read, native or as tags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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

ToolName = Literal["search", "think", "get_document", "find", "finish", "answer"]
RANKING_TOOLS: tuple[ToolName, ...] = ("search", "think", "get_document", "finish")
ANSWERING_TOOLS: tuple[ToolName, ...] = ("search", "think", "get_document", "find", "answer")
"""The tools of an agent that ends with a ranking, and of one that ends with an answer."""

MAX_DOCUMENTS = 50
"""Maximum number of documents that a search returns to the model."""

_ID_LIST = {"type": "array", "items": {"type": "string"}}


def tools(topk: int, most: int, names: Sequence[ToolName] | None = None) -> str:
    """Return the tools as JSON text. `topk` is the default number of documents of a search, `most` the largest."""
    offered = _offered(topk, most)
    return json.dumps([offered[name] for name in names or RANKING_TOOLS])


def _offered(topk: int, most: int) -> dict[ToolName, dict[str, Any]]:
    """Return tool -> how it is offered to the model."""
    return {
        "search": _tool(
            "search",
            "Search the collection. Returns passages with their ids, the best match first. A passage that was "
            "shown before is named without its text.",
            ["query"],
            query=("string", "what to search for"),
            k=("integer", f"number of passages, from 1 to {most}; {topk} if left out"),
        ),
        "think": _tool(
            "think",
            "Write down a thought, such as what is known, what is missing and what to search for next.",
            ["thought"],
            thought=("string", "the thought"),
        ),
        "get_document": _tool(
            "get_document",
            "Read the whole text of a passage that a search returned.",
            ["id"],
            id=("string", "the id of the passage"),
        ),
        "find": _tool(
            "find",
            "Find words in the whole text of a passage that a search returned. Returns the places where they are.",
            ["id", "text"],
            id=("string", "the id of the passage"),
            text=("string", "the words to find"),
        ),
        "finish": _tool(
            "finish",
            "End the task with the relevant passages.",
            ["ids"],
            ids=(_ID_LIST, "the ids of all relevant passages, the most relevant first"),
        ),
        "answer": _tool(
            "answer",
            "End the task with the answer to the question.",
            ["answer", "confidence", "ids"],
            answer=(
                "string",
                "the answer, with the ids of the passages behind each sentence, such as [d3][d7]",
            ),
            confidence=("number", "how sure you are that the answer is right, from 0 to 100"),
            ids=(_ID_LIST, "the ids of all relevant passages, the most relevant first"),
        ),
    }


def _tool(name: str, description: str, required: Sequence[str], **fields: tuple[Any, str]) -> dict[str, Any]:
    properties = {
        field: {**({"type": kind} if isinstance(kind, str) else kind), "description": meaning}
        for field, (kind, meaning) in fields.items()
    }
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "parameters": parameters}


TEXT_ARGUMENTS: Mapping[ToolName, str] = {
    "search": "query",
    "think": "thought",
    "get_document": "id",
    "find": "text",
    "finish": "ids",
    "answer": "answer",
}
"""Tool -> its argument that must be there. It is the content of its tag."""


class BadCall(Exception):  # noqa: N818 - reads as what came
    """A call that cannot be carried out: its status, and the answer that the model gets."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status: Status = status


def tool_of(call: ToolCall, names: Sequence[ToolName] = RANKING_TOOLS) -> ToolName:
    """Return the tool of a call. Raises BadCall if it is not one of these."""
    for name in names:
        if name == call.name:
            return name
    raise BadCall("unknown_tool", f"There is no tool {call.name[:40]!r}. The tools are {', '.join(names)}.")


def arguments_of(call: ToolCall, names: Sequence[ToolName] = RANKING_TOOLS) -> dict[str, Any]:
    """Return the arguments of a call. Raises BadCall if the tool does not exist or they cannot be read."""
    wanted = TEXT_ARGUMENTS[tool_of(call, names)]
    arguments = parsed(call.arguments)
    if arguments is None:
        raise BadCall("bad_arguments", f"The arguments of {call.name} are not a JSON object with {wanted!r}.")
    for name in (wanted, "id") if call.name == "find" else (wanted,):
        if name not in arguments:
            raise BadCall("bad_arguments", f"{call.name} needs the argument {name!r}.")
        if call.name != "finish" and not (isinstance(arguments[name], str) and arguments[name].strip()):
            raise BadCall("bad_arguments", f"The argument {name!r} of {call.name} must be a text that is not empty.")
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


def confidence_of(value: object) -> float | None:
    """Return a confidence between 0 and 1; None if it cannot be read. Models write 80, "80 %", 0.8 and 1.0.

    A number up to 1 that has a decimal point is a share. 1 is one percent.
    """
    number = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(%?)\s*", str(value)) if not isinstance(value, bool) else None
    if number is None:
        return None
    stated = float(number[1])
    return stated if stated <= 1 and "." in number[1] and not number[2] else min(stated, 100.0) / 100


_CITED = re.compile(r"([\[【])\s*(d\d{1,4}(?:\s*[-–,;]\s*d?\d{1,4})*)\s*([\]】])", re.IGNORECASE)


def plain_citations(text: str) -> str:
    """Return an answer with the numbers of its citations: [d3, d7] becomes [3, 7]."""
    return _CITED.sub(lambda mark: f"[{re.sub('d', '', mark[2], flags=re.IGNORECASE)}]", text)


_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {"search": ("k",), "find": ("id",), "answer": ("confidence", "ids")}
"""Tool -> the arguments that are attributes of its tag."""
_ATTRIBUTE = r"\s+(?:k|id|confidence|ids)\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|\w+%?)"


def tagged(names: Sequence[ToolName]) -> tuple[ToolName, ...]:
    """Return the tools that have a tag, for models without tool calls. These write thoughts as text."""
    return tuple(name for name in names if name != "think")


def stop_tags(names: Sequence[ToolName]) -> tuple[str, ...]:
    """Return the tags at which a turn of a model without tool calls ends."""
    return tuple(f"</{name}>" for name in tagged(names))


def tagged_call(
    text: str, finish_reason: str, names: Sequence[ToolName] = RANKING_TOOLS
) -> tuple[str, ToolCall | None]:
    """Return a text up to its first call, and the call; None if it makes no call.

    A server leaves out the tag at which it stopped, so it is put back, unless the token limit cut the text.
    """
    either = "|".join(tagged(names))
    closing, opening = re.compile(rf"</({either})>"), re.compile(rf"<({either})((?:{_ATTRIBUTE})*)\s*>")
    if closed := closing.search(text):
        text = text[: closed.end()]
    elif (opened := list(opening.finditer(text))) and finish_reason != "length":
        text = f"{text}</{opened[-1][1]}>"
        closed = closing.search(text)
    if closed is None:
        return text, None
    openings = [each for each in opening.finditer(text) if each[1] == closed[1]]
    content = text[openings[-1].end() : text.rindex("</")].strip() if openings else ""
    # Tags that are only mentioned, as in the prompt.
    mentioned = {"and", "your query", *(TEXT_ARGUMENTS[name] for name in names)}
    if not openings or content.casefold() in mentioned:
        return text, None
    name = tool_of(ToolCall("", closed[1], ""), names)
    written = dict(re.findall(r"(\w+)\s*=\s*(\"[^\"]*\"|'[^']*'|\w+%?)", openings[-1][2]))
    further = {key: value.strip("\"'") for key, value in written.items() if key in _ATTRIBUTES.get(name, ())}
    return text, ToolCall("", name, json.dumps({TEXT_ARGUMENTS[name]: content, **further}))
