"""Run files of agents in the form of BrowseComp-Plus: one JSON file for each question, read and written.

A file has `query_id`, `status`, `tool_call_counts`, `retrieved_docids`, `result` (the steps, the answer last), `usage`
and `metadata.model`. A file becomes a trace as our own agents leave it, and a trace becomes a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from r2med.data.corpus import Corpus
from r2med.foundation.core.search_steps import SearchStep
from r2med.foundation.text.citation_marks import CITATION, cited_numbers
from r2med.foundation.text.unicode import to_unicode
from r2med.systems.agents.conversation import TRACE_FORMAT

COMPLETED = "completed"
MAX_FILE_BYTES = 64 * 2**20
MAX_COUNT = 10**9
"""The largest count of calls or tokens in a file."""
_BRACKETS = re.compile(r"\[([^\[\]]*)\]|【([^【】]*)】")
_MAX_MARK = 9999
"""The largest number of a citation."""


@dataclass(frozen=True)
class AgentRunFile:
    """What an agent did about one question."""

    query: str
    status: str
    answer: str
    """The text of the last step, if that is an answer; otherwise empty."""
    retrieved: tuple[str, ...] = ()
    tool_calls: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[Mapping[str, Any], ...] = ()
    """The tool calls, in their order."""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def is_completed(self) -> bool:
        """True if the agent came to its end by itself."""
        return self.status == COMPLETED

    @property
    def searches(self) -> int:
        """Number of searches: as the file counts them, or those among its steps."""
        counted = sum(count for name, count in self.tool_calls.items() if _is_search(name))
        return counted or sum(_kind(step) == "search" for step in self.steps)

    @classmethod
    def parse(cls, content: Any) -> AgentRunFile:
        """Return the file of a JSON value. Raises ValueError if it is not of this form."""
        if not isinstance(content, dict) or content.get("query_id") is None:
            raise ValueError("it has no query_id")
        steps = [step for step in content.get("result") or () if isinstance(step, dict)]
        last = steps[-1] if steps else {}
        usage, metadata, counts = (_object(content.get(name)) for name in ("usage", "metadata", "tool_call_counts"))
        said, retrieved = last.get("output"), content.get("retrieved_docids")
        if not isinstance(retrieved or [], list):
            raise ValueError("its retrieved_docids are not a list")
        return cls(
            to_unicode(str(content["query_id"])),
            str(content.get("status", "")),
            to_unicode(said).strip() if isinstance(said, str) and last.get("type") == "output_text" else "",
            tuple(to_unicode(str(each)) for each in retrieved or () if _is_id(each)),
            {str(name): _count(count) for name, count in counts.items()},
            tuple(step for step in steps if step.get("type") == "tool_call"),
            to_unicode(str(metadata.get("model") or "")),
            _count(usage.get("input_tokens") or 0),
            _count(usage.get("output_tokens") or 0),
        )


@dataclass(frozen=True)
class AgentRunFolder:
    """The run files of a folder that can be read."""

    files: tuple[AgentRunFile, ...]
    unreadable: tuple[str, ...] = ()
    """The names of files that are not of this form."""

    @classmethod
    def read(cls, folder: Path) -> AgentRunFolder:
        """Read all JSON files of a folder, in the order of their names. Files of another form are left out."""
        found, lost = [], []
        for path in sorted(folder.glob("*.json")):
            try:
                if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
                    raise ValueError("it is not a file, or it is too large")
                found.append(AgentRunFile.parse(json.loads(path.read_bytes())))
            except (OSError, ValueError, TypeError, RecursionError):
                lost.append(path.name)
        return cls(tuple(found), tuple(lost))

    @cached_property
    def by_query(self) -> Mapping[str, AgentRunFile]:
        """Query -> its file. Of several, the first one counts."""
        return {each.query: each for each in reversed(self.files)}

    @property
    def model(self) -> str:
        """The model of the files; that of the first one which names one."""
        return next((each.model for each in self.files if each.model), "")

    @cached_property
    def search_steps(self) -> frozenset[SearchStep]:
        """How far the files say that documents came. Texts of results and opened documents are not in all files."""
        kinds = {_kind(step) for each in self.files for step in each.steps}
        shows = any(_documents(step) for each in self.files for step in each.steps if _kind(step) == "search")
        # What an answer cites is looked up among the documents that were returned.
        returns = shows or any(each.retrieved for each in self.files)
        known: dict[SearchStep, bool] = {
            "returned": returns,
            "shown": shows,
            "opened": "open" in kinds,
            "cited": returns and any(each.answer for each in self.files),
        }
        return frozenset(step for step, is_known in known.items() if is_known)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _kind(step: Mapping[str, Any]) -> Literal["open", "search", "other"]:
    """Return what a tool call does, by the name of the tool or by its result."""
    name = step.get("tool_name")
    if name == "get_document":
        return "open"
    return "search" if _is_search(str(name)) or _documents(step) else "other"


def _is_search(name: str) -> bool:
    return "search" in name.casefold() or "retriev" in name.casefold()


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _count(value: Any) -> int:
    """Return a count. Raises ValueError if no agent can have come to it."""
    number = int(value)
    if not 0 <= number <= MAX_COUNT:
        raise ValueError("it has an impossible count")
    return number


def _arguments(step: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(_json(step.get("arguments")))


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _documents(step: Mapping[str, Any]) -> list[str]:
    """Return the documents in the result of a search."""
    value = _json(step.get("output"))
    rows = value if isinstance(value, list) else []
    return [to_unicode(str(row["docid"])) for row in rows if isinstance(row, dict) and _is_id(row.get("docid"))]


def trace_of_file(file: AgentRunFile | None, steps: Collection[SearchStep], corpus: Corpus) -> dict[str, Any]:
    """Return the trace of a conversation. Without a file the question was not answered."""
    if file is None:
        missing = {"kind": "empty", "message": "there is no file for this question"}
        return _trace([], "", missing, {step: [] for step in steps})
    turns = [_turn(step, corpus) for step in file.steps]
    listed = dict.fromkeys(hit["id"] for turn in turns for hit in turn["documents"] or ())
    if rest := [document for document in dict.fromkeys(file.retrieved) if document not in listed]:
        turns.append({"text": "", "query": "", "documents": _hits(rest), "information": "", "notice": ""})
    returned = [*listed, *rest]
    text, cited = numbered_citations(file.answer, returned, corpus)
    came: Mapping[SearchStep, Sequence[str]] = {
        "returned": returned,
        "shown": list(dict.fromkeys(document for turn in turns for document in turn.get("shown", ()))),
        "opened": list(dict.fromkeys(document for turn in turns for document in turn.get("opened", ()))),
        "cited": cited if file.is_completed else [],
    }
    failure = None if file.is_completed else {"kind": "unfinished", "message": f"its status is {file.status[:60]!r}"}
    trace = _trace(turns, text if file.is_completed else "", failure, {s: d for s, d in came.items() if s in steps})
    trace["total"] |= {
        "turns": len(file.steps) + 1,
        "searches": file.searches,
        "prompt_tokens": file.prompt_tokens,
        "completion_tokens": file.completion_tokens,
    }
    return trace


def _trace(
    turns: list[dict[str, Any]], text: str, failure: Mapping[str, str] | None, steps: Mapping[SearchStep, Sequence[str]]
) -> dict[str, Any]:
    total = {"turns": 0, "searches": 0, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0}
    return {
        "format": TRACE_FORMAT,
        "prompt": "",
        "turns": turns,
        "text": text,
        "failure": failure,
        "steps": {step: list(documents) for step, documents in steps.items()},
        "confidence": None,
        "total": total,
    }


def _turn(step: Mapping[str, Any], corpus: Corpus) -> dict[str, Any]:
    """Return a tool call as a turn. What was opened was also shown."""
    arguments = _arguments(step)
    called = f"{step.get('tool_name')}({to_unicode(str(step.get('arguments') or ''))[:4000]})"
    turn: dict[str, Any] = {"text": called, "query": "", "documents": None, "information": "", "notice": ""}
    if _kind(step) == "open":
        document = to_unicode(str(arguments.get("docid", "")))
        known = [document] if document and corpus.rows([document])[0] >= 0 else []
        return {**turn, "shown": known, "opened": known}
    if _kind(step) == "other":
        return turn
    found = _documents(step)
    query = next((str(arguments[name]) for name in ("query", "user_query", "q") if name in arguments), "")
    return {**turn, "query": to_unicode(query), "documents": _hits(found), "shown": found}


def _hits(documents: Sequence[str]) -> list[dict[str, Any]]:
    return [{"id": document, "score": float(len(documents) - place)} for place, document in enumerate(documents)]


def numbered_citations(text: str, returned: Sequence[str], corpus: Corpus) -> tuple[str, list[str]]:
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


def file_of_trace(query: str, trace: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the JSON value of a run file. The citations of the answer are the ids of the dataset."""
    returned = list(dict.fromkeys(hit["id"] for turn in trace["turns"] for hit in turn.get("documents") or ()))
    text = CITATION.sub(lambda mark: f" [{', '.join(_ids(mark[0], returned))}]", trace["text"])
    confidence = trace.get("confidence")
    answer = text if confidence is None else f"{text}\n\nConfidence: {100 * confidence:g}%"
    steps = list(_steps(trace))
    total = trace["total"]
    end = {"type": "output_text", "tool_name": None, "arguments": None, "output": answer}
    counts: dict[str, int] = {}
    for step in steps:
        counts[step["tool_name"]] = counts.get(step["tool_name"], 0) + 1
    return {
        "metadata": {"model": model},
        "query_id": query,
        "tool_call_counts": counts,
        "usage": {
            "input_tokens": total["prompt_tokens"],
            "output_tokens": total["completion_tokens"],
            "total_tokens": total["prompt_tokens"] + total["completion_tokens"],
        },
        "status": "incomplete" if trace["failure"] else COMPLETED,
        "retrieved_docids": returned,
        "result": steps if trace["failure"] else [*steps, end],
    }


def _ids(mark: str, returned: Sequence[str]) -> list[str]:
    """Return the ids of a citation. A number that no document has stays a number."""
    return [returned[n - 1] if 0 < n <= len(returned) else str(n) for n in cited_numbers(mark)]


def _steps(trace: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the searches and the opened documents of a conversation. Texts of documents are left out."""
    for turn in trace["turns"]:
        if turn.get("documents") is not None:
            rows = [{"docid": hit["id"], "score": hit["score"]} for hit in turn["documents"]]
            yield _call("search", {"query": turn["query"]}, rows)
        for document in turn.get("opened", ()):
            yield _call("get_document", {"docid": document}, {"docid": document})


def _call(name: str, arguments: Mapping[str, str], output: Any) -> dict[str, Any]:
    return {
        "type": "tool_call",
        "tool_name": name,
        "arguments": json.dumps(arguments, ensure_ascii=False),
        "output": json.dumps(output, ensure_ascii=False),
    }
