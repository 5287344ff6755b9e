"""The settings of expansions by an LLM."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Retrieving, SignedNumbers, Stage, argument
from r2med.models.llm.llm_cards import Cleaning, LLMCard, resolve_llm, with_own_file
from r2med.models.prompts.templates import PROMPTS_MEANING
from r2med.systems.expand.expansion import (
    Joining,
    JoiningChoice,
    QueryChoice,
    SearchApart,
)
from r2med.systems.expand.method_cards import METHODS, MethodCard
from r2med.systems.expand.recorded import WritingStage
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.fused_rankings import METHODS_MEANING, FusionMethod


class GeneratedSettings(WritingStage):
    """The settings of all expansions by an LLM, and their checks."""

    llm: str = argument("the LLM that writes, or whose recorded texts are read")
    samples: int = Field(
        1,
        ge=1,
        le=1000,
        description="texts per query: joined for word matching, averaged as vectors, unless they are searched apart",
    )
    rounds: int = Field(
        0, ge=0, le=100, description="times that the LLM sees the search results of its text and rewrites it"
    )
    query: QueryChoice = Field(
        "", description="keep or drop the query's own words in a search by words; empty: the choice of the method"
    )
    cleaning: Cleaning = Field(
        "strict",
        description="published: the answer follows the first marker, and a text without one counts whole",
    )
    joining: JoiningChoice = Field(
        "", description="published: copies of the query without a space between them, as in the benchmark's rows"
    )
    by: Retrieving = Field(default_factory=BM25, description="the retriever that searches between rounds")
    prompts: str = Field("", description=PROMPTS_MEANING)
    join: Literal["text", "runs"] = Field(
        "text", description="runs: each text is searched apart, and the rankings are fused; text: all are one search"
    )
    n: int = Field(
        0, ge=0, le=100, description="number of queries per answer, for methods that write a list of queries"
    )
    fuse: FusionMethod = Field("rrf", description=f"fusion of searches that are made apart. {METHODS_MEANING}")
    weights: SignedNumbers = Field(
        (), description="weight of each query of a list, for example 1:1:-0.5; a negative one moves away; empty: all 1"
    )
    original: float = Field(
        0.0, ge=-1e9, le=1e9, description="weight of the original query beside those searched apart; 0: not searched"
    )

    @model_validator(mode="after")
    def _searches_between_rounds(self) -> Self:
        shown = self.rounds or self.card.passages_by == "system"
        if "by" in self.model_fields_set and self.by != BM25() and not shown:
            raise ValueError(f"by={self.by} searches between rounds, but rounds=0: give rounds=1 or more")
        return self

    @model_validator(mode="after")
    def _fits_the_answers(self) -> Self:
        """Refuse settings that would have no effect on answers of this method."""
        answer, name = self.card.answer, self.name
        if answer != "queries" and (self.n or self.weights):
            raise ValueError(f"{name} does not write a list of queries: n and weights are for methods such as queries")
        if answer == "queries" and not self.n:
            raise ValueError(f"{name}: n must be 1 or more, the number of queries to write")
        always = self.card.defaults.get("n", 0)
        if self.n != always and "count" not in self.card.fields:
            raise ValueError(f"{name} always writes {always} queries: leave n out")
        if self.weights and len(self.weights) != self.n:
            raise ValueError(
                f"{name} writes {self.n} queries, but weights has {len(self.weights)} numbers: give {self.n}"
            )
        if self.weights and max(*self.weights, self.original) <= 0:
            raise ValueError(f"{name}: no query has a weight above 0, so nothing would be ranked; give weights=1:…")
        if answer != "text" and (self.rounds or self.query or self.joining or self.join != "text"):
            raise ValueError(
                f"{name} writes queries, each searched apart and without the words of the original: rounds, query, "
                "joining and join are not for it; original=1 searches the original query too"
            )
        if not self.is_apart and (self.original or self.fuse != "rrf"):
            raise ValueError(f"{name}: fuse and original are for texts that are searched apart: add join=runs")
        return self

    @property
    def card(self) -> MethodCard:
        """The card of the method."""
        return METHODS.card(self.name)

    @property
    def first(self) -> Stage:
        """The retriever of the passages that a method shows before the first round."""
        return self.by if self.card.passages_by == "system" else BM25()

    @property
    def shows_passages(self) -> bool:
        """True if passages are shown before the first round."""
        return "passages" in self.card.fields

    @property
    def is_apart(self) -> bool:
        """True if texts are searched apart."""
        return self.join == "runs" or self.card.answer != "text"

    @property
    def how_joined(self) -> Joining:
        """How texts are joined with the query, or searched apart."""
        joining = self.card.joining.choose(self.query, self.joining)
        if not self.is_apart:
            return joining
        apart = SearchApart(self.fuse, self.weights, self.original, replaces=self.card.answer != "text")
        return replace(joining, apart=apart)

    @property
    def own_llm(self) -> LLMCard | None:
        """The model of a trained rewriter; None if the user names an LLM."""
        return None if self.llm else self.card.llm

    def llm_card(self, setup: Setup) -> LLMCard:
        """Return the card of the LLM with the sampling settings of the method."""
        own = self.own_llm
        card = self.card.llm_card(with_own_file(own, setup) if own else resolve_llm(self.llm, setup))
        return card.model_copy(update={"cleaning": "published" if self.card.whole else self.cleaning})
