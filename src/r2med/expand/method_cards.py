"""Method cards: one TOML file each, for expansions that differ in data only. A new one is a card and a prompt."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from r2med.core.cards import Catalogue
from r2med.expand.expansion import Joining, QueryChoice
from r2med.llm.llm_cards import LLMCard

MAX_SAMPLES = 1000
MAX_ROUNDS = 100


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Passages(_Part):
    """What an LLM is shown of a search: BM25's for the query, or what its draft found."""

    depth: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many passages."""
    words: Annotated[int, Field(ge=1, le=100_000)] = 512
    """Words of each passage."""


class MethodSampling(_Part):
    """How texts are drawn, where a method asks for something else than the LLM's card says."""

    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    """How freely tokens are drawn."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Draw from the likeliest tokens that make up this share."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens of a text at most."""


class MethodDefaults(_Part):
    """What the settings of a method are unless they are given."""

    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] = 1
    """Texts for each query."""
    rounds: Annotated[int, Field(ge=0, le=MAX_ROUNDS)] = 0
    """Rounds of refinement."""
    query: QueryChoice = ""
    """Whether the query's own words are searched by BM25 too; empty: as `copies` says."""


class MethodCard(_Part):
    """How an LLM is asked for texts, and how they are searched."""

    name: str
    """What one types; by default the name of the file."""
    variant: str = ""
    """What stands after the colon: NAME:VARIANT."""
    summary: str
    """What it does, in one sentence."""
    template: str = ""
    """The prompt files are TEMPLATE.KIND.txt, or TEMPLATE.txt for all kinds of task; empty: named as the card."""
    fields: tuple[Literal["query", "examples", "passages"], ...] = ("query",)
    """What the template may name: the query, worked examples (examples.KIND.txt), BM25's passages."""
    refine: str = "refine"
    """The template of a round of refinement; it may name {query}, {passages} and {draft}."""
    asked: bool = True
    """Whether an LLM can be asked; else there are recorded texts only."""
    copies: Annotated[int, Field(ge=0, le=100)] = 0
    """How often the query stands before the text where words are matched."""
    dense: str = ""
    """What a dense model searches: empty for the mean of the vectors of query and text, else one string."""
    passages: Passages = Passages()
    """How much of what a search finds is shown."""
    sampling: MethodSampling = MethodSampling()
    """How texts are drawn."""
    defaults: MethodDefaults = MethodDefaults()
    """The settings, unless they are given."""

    @field_validator("dense")
    @classmethod
    def _names_the_text(cls, value: str) -> str:
        if value and "{text}" not in value:
            raise ValueError("it is empty, or names {text} and, if it is to be searched as well, {query}")
        return value

    @property
    def prompt(self) -> str:
        """The name of its template."""
        return self.template or self.name

    @property
    def joining(self) -> Joining:
        """How texts join the query."""
        return Joining(self.copies, self.dense)

    def llm_card(self, card: LLMCard) -> LLMCard:
        """Return an LLM's card with the sampling that this method asks for."""
        changes: dict[str, Any] = self.sampling.model_dump(exclude_none=True)
        if "max_tokens" in changes:
            changes["max_tokens"] = min(changes["max_tokens"], card.max_tokens)
        return card.model_copy(update=changes)


METHODS = Catalogue("methods", MethodCard, "expansion")
REFINE_FIELDS = ("query", "passages", "draft")
