"""Method cards: one TOML file each, for expansions that differ in data only. A new method is a card and a prompt."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from r2med.core.cards import Catalogue
from r2med.expand.expansion import Joining, QueryChoice
from r2med.llm.llm_cards import LLMCard

MAX_SAMPLES = 1000
MAX_ROUNDS = 100


class _MethodPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Passages(_MethodPart):
    """The search results that an LLM is shown: those of BM25 for the query, or those of its draft."""

    depth: Annotated[int, Field(ge=1, le=1000)] = 10
    """Number of passages."""
    words: Annotated[int, Field(ge=1, le=100_000)] = 512
    """Number of words of each passage."""


class MethodSampling(_MethodPart):
    """Sampling settings of a method that differ from those of the LLM's card."""

    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    """Sampling temperature."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Nucleus sampling (top-p): the share of probability that tokens are drawn from."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of tokens of a text."""


class MethodDefaults(_MethodPart):
    """The default settings of a method."""

    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] = 1
    """Number of texts for each query."""
    rounds: Annotated[int, Field(ge=0, le=MAX_ROUNDS)] = 0
    """Number of rounds of refinement."""
    query: QueryChoice = ""
    """True if BM25 also searches the query's own words; empty means as `copies` says."""


class MethodCard(_MethodPart):
    """How an LLM is called for texts, and how the texts are searched."""

    name: str
    """The name of the method, as typed. The default is the name of the card file."""
    variant: str = ""
    """The part after the colon in NAME:VARIANT."""
    summary: str
    """A description of the method in one sentence."""
    template: str = ""
    """The prompt files are TEMPLATE.KIND.txt, or TEMPLATE.txt for all kinds of task. The default is the card's name."""
    fields: tuple[Literal["query", "examples", "passages"], ...] = ("query",)
    """The fields of the template: the query, worked examples (examples.KIND.txt), passages of BM25."""
    refine: str = "refine"
    """The template of a round of refinement. Its fields are {query}, {passages} and {draft}."""
    asked: bool = True
    """True if an LLM can be called. Otherwise there are only recorded texts."""
    copies: Annotated[int, Field(ge=0, le=100)] = 0
    """Number of copies of the query before the text in a search by words."""
    dense: str = ""
    """The input of a dense model: empty for the mean of the vectors of query and text, otherwise one string."""
    passages: Passages = Passages()
    """How many search results are shown, and how much of each."""
    sampling: MethodSampling = MethodSampling()
    """The sampling settings of the method."""
    defaults: MethodDefaults = MethodDefaults()
    """The default settings of the method."""

    @field_validator("dense")
    @classmethod
    def _names_the_text(cls, value: str) -> str:
        if value and "{text}" not in value:
            raise ValueError("it is empty, or names {text} and, if it is to be searched as well, {query}")
        return value

    @property
    def prompt(self) -> str:
        """The name of the template."""
        return self.template or self.name

    @property
    def joining(self) -> Joining:
        """How texts are joined with the query."""
        return Joining(self.copies, self.dense)

    def llm_card(self, card: LLMCard) -> LLMCard:
        """Return an LLM's card with the sampling settings of this method."""
        changes: dict[str, Any] = self.sampling.model_dump(exclude_none=True)
        if "max_tokens" in changes:
            changes["max_tokens"] = min(changes["max_tokens"], card.max_tokens)
        return card.model_copy(update=changes)


METHODS = Catalogue("methods", MethodCard, "expansion")
REFINE_FIELDS = ("query", "passages", "draft")
