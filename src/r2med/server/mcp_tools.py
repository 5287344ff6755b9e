"""The tools of the MCP server: `search` asks a system, and `get_document` returns the text of a document.

They return documents of the corpus and nothing else of a dataset: no query, no judgement and no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from r2med.foundation.core.errors import nearest
from r2med.server.answer_pool import AnswerPool
from r2med.server.refusals import HTTPError
from r2med.server.retrieve_protocol import check_text, checked
from r2med.server.search_protocol import FoundPassage, SearchResponse, answered, find_system
from r2med.server.served_corpus import ServedData

MAX_K = 50
"""Maximum number of documents of a search. An assistant reads all of them."""
EXCERPT = 2000
"""Maximum number of characters of a document in the answer to a search."""
PIECE = 20_000
"""Maximum number of characters of a document in the answer to `get_document`."""

SEARCH, GET_DOCUMENT = "search", "get_document"


class SearchArguments(BaseModel):
    """The arguments of `search`."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(description="What to search for: a question, a case description or key words.")
    k: int = Field(10, description="Number of documents to return.")
    system: str = Field("", description="The system that searches. Default: the first one.")


class DocumentArguments(BaseModel):
    """The arguments of `get_document`."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="The id of a document, as a search returned it.")
    start: int = Field(0, ge=0, description="The first character to return, counted from 0.")


class Excerpt(BaseModel):
    """A document that a search found, with the part of its text that matches best."""

    id: str
    score: float
    text: str
    cut: bool = Field(description="True if the document is longer: get_document returns the whole text.")


class FoundDocuments(BaseModel):
    """The answer to `search`."""

    system: str = Field(description="The system that searched.")
    documents: list[Excerpt] = Field(description="The documents, best first.")
    problem: str = Field("", description="Why there are no documents, or which stage failed and was left out.")


class DocumentPiece(BaseModel):
    """The answer to `get_document`."""

    id: str
    text: str
    characters: int = Field(description="Number of characters of the whole document.")
    next_start: int | None = Field(description="Where the next piece starts. null at the end of the document.")


@dataclass(frozen=True)
class SearchTools:
    """The two tools over a served corpus and its systems."""

    data: ServedData
    pool: AnswerPool

    def listed(self) -> list[Tool]:
        """Return the tools with their schemas."""
        corpus = f"{self.data.corpus.dataset} ({len(self.data.corpus.corpus):,} documents)"
        arguments = SearchArguments.model_json_schema()
        arguments["properties"]["k"] |= {"minimum": 1, "maximum": MAX_K}
        arguments["properties"]["system"]["enum"] = ["", *(system.name for system in self.data.systems)]
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return [
            Tool(
                name=SEARCH,
                description=f"Search the documents of {corpus}. Returns the best documents with excerpts.",
                input_schema=arguments,
                output_schema=FoundDocuments.model_json_schema(),
                annotations=reads,
            ),
            Tool(
                name=GET_DOCUMENT,
                description=f"Return the text of a document of {self.data.corpus.dataset}, in pieces if it is long.",
                input_schema=DocumentArguments.model_json_schema(),
                output_schema=DocumentPiece.model_json_schema(),
                annotations=reads,
            ),
        ]

    async def call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Return the result of a tool. A fault of the arguments or of the search is one line for the assistant."""
        try:
            await self.data.check()
            if name == SEARCH:
                return _result(await self._search(arguments))
            if name == GET_DOCUMENT:
                return _result(self._document(arguments))
            raise HTTPError(404, f"there is no tool {name!r}: use {SEARCH} or {GET_DOCUMENT}")
        except HTTPError as error:
            return CallToolResult(content=[TextContent(text=error.detail)], is_error=True)

    async def _search(self, arguments: dict[str, Any]) -> FoundDocuments:
        asked = checked(SearchArguments, arguments, {"question": "…"})
        check_text("question", asked.question)
        if not 1 <= asked.k <= MAX_K:
            raise HTTPError(422, f"k: it must be from 1 to {MAX_K}")
        system = find_system(self.data.systems, asked.system)
        if system is None:
            names = [each.name for each in self.data.systems]
            guess = nearest(asked.system, names)
            raise HTTPError(422, f"system: there is no {asked.system[:200]!r}{guess}: use {' or '.join(names)}")
        response = await answered(self.pool, system, asked.question, asked.k)
        if response.status == "failed":
            raise HTTPError(500, response.problem)
        excerpts = [_excerpt(passage) for passage in response.passages]
        return FoundDocuments(system=response.system, documents=excerpts, problem=_problem(response))

    def _document(self, arguments: dict[str, Any]) -> DocumentPiece:
        asked = checked(DocumentArguments, arguments, {"id": "…"})
        corpus = self.data.corpus.corpus
        row = corpus.row(asked.id)
        if row is None:
            raise HTTPError(404, f"id: there is no document {asked.id[:200]!r}: use an id that {SEARCH} returned")
        text = corpus.text(row)
        if asked.start and asked.start >= len(text):
            raise HTTPError(422, f"start: the document has {len(text):,} characters")
        end = asked.start + PIECE
        piece = text[asked.start : end]
        return DocumentPiece(id=asked.id, text=piece, characters=len(text), next_start=end if end < len(text) else None)


def _result(value: BaseModel) -> CallToolResult:
    """Return a result as a structure, and as the same in text for assistants that read text only."""
    return CallToolResult(
        content=[TextContent(text=value.model_dump_json())], structured_content=value.model_dump(mode="json")
    )


def _excerpt(passage: FoundPassage) -> Excerpt:
    """Return the characters of a passage around the window that matches best."""
    middle = (passage.window.start + passage.window.stop) // 2
    start = max(0, min(middle - EXCERPT // 2, len(passage.text) - EXCERPT))
    shown = passage.text[start : start + EXCERPT]
    return Excerpt(id=passage.id, score=passage.score, text=shown, cut=passage.cut or len(shown) < len(passage.text))


def _problem(response: SearchResponse) -> str:
    failed = (f"{stage.name}: {notice}" for stage in response.stages for notice in stage.notices)
    return "; ".join(filter(None, (response.problem, *failed)))
