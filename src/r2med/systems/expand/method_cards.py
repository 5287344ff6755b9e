"""Method cards: one TOML file each, for expansions that differ in data only. A new method is a card and a prompt."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from r2med.foundation.core.keys import changed_values
from r2med.foundation.core.names import Catalogue
from r2med.models.llm.llm_cards import LLMCard, with_named_llm
from r2med.systems.expand.expansion import Joining


class _MethodPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Passages(_MethodPart):
    """The search results that an LLM is shown: those of the query, or those of its draft."""

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


class MethodCard(_MethodPart):
    """How an LLM is called for texts, and how the texts are searched."""

    name: str
    """The name of the method, as typed. The default is the name of the card."""
    variant: str = ""
    """The part after the colon in NAME:VARIANT."""
    summary: str
    """A description of the method in one sentence."""
    template: str = ""
    """The prompt files are TEMPLATE.KIND.txt, or TEMPLATE.txt for all kinds of task. The default is the card's name."""
    fields: tuple[Literal["query", "examples", "passages", "count", "task"], ...] = ("query",)
    """The fields of the template: the query, worked examples (examples.KIND.txt), passages of a search, the number of
    queries to write, the task of the dataset in one sentence."""
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
    defaults: dict[str, int | float | str | tuple[float, ...]] = {}
    """Settings of the method that differ from those of other methods, such as samples. The stage checks them."""
    answer: Literal["text", "query", "queries"] = "text"
    """The content of an answer: a text like a relevant document, a query that replaces the original one, or a list of
    queries."""
    system: bool = True
    """False if the prompt has no system message."""
    whole: bool = False
    """True if the reasoning before an answer is part of the text."""
    passages_by: Literal["bm25", "system"] = "bm25"
    """The retriever of the passages that are shown: BM25, or the retriever of the system."""
    accumulate: bool = False
    """True if each round adds texts to those of the rounds before. Otherwise it replaces them."""
    ban: bool = False
    """True if passages that were among the best of an earlier search are not shown again."""
    balance: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """Number of words of text for each word of the query's copies: longer texts get more copies. 0: only `copies`."""
    llm: LLMCard | None = None
    """The model of a trained rewriter, with the fields of an LLM's card. Without it, the user names one: NAME(LLM)."""
    published: str = ""
    """Where the authors publish their wording. A prompt file of the same name replaces ours."""
    notes: tuple[str, ...] = ()
    """Other facts about the method, a sentence each."""

    @model_validator(mode="before")
    @classmethod
    def _named_llm(cls, content: Any) -> Any:
        return with_named_llm(content)

    @field_validator("dense")
    @classmethod
    def _names_the_text(cls, value: str) -> str:
        if value and "{text}" not in value:
            raise ValueError("it is empty, or names {text} and, if it is to be searched as well, {query}")
        return value

    @model_validator(mode="after")
    def _says_how_many(self) -> MethodCard:
        if (self.answer == "queries") != bool(self.defaults.get("n")):
            raise ValueError('answer = "queries" needs the number of queries, n in [defaults]; other answers have none')
        return self

    @property
    def prompt(self) -> str:
        """The name of the template."""
        return self.template or self.name

    @property
    def joining(self) -> Joining:
        """How texts are joined with the query."""
        return Joining(self.copies, self.dense, balance=self.balance)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What a user of the method should know, a sentence each."""
        model = (f"It asks the model {self.llm.model}, unless an LLM is named.",) if self.llm else ()
        wording = (f"The prompt is ours. The authors publish theirs: {self.published}.",) if self.published else ()
        own = self.passages_by == "system"
        passages = ("The retriever of the system finds the passages. by= names another one.",) if own else ()
        return (*model, *wording, *passages, *self.notes)

    def key(self) -> dict[str, Any]:
        """Return the fields that a score depends on."""
        return changed_values(self, but=("summary", "defaults", "llm", "published", "notes"))

    def llm_card(self, card: LLMCard) -> LLMCard:
        """Return an LLM's card with the sampling settings of this method."""
        changes: dict[str, Any] = self.sampling.model_dump(exclude_none=True)
        if "max_tokens" in changes:
            changes["max_tokens"] = min(changes["max_tokens"], card.max_tokens)
        return card.model_copy(update=changes)


METHODS = Catalogue("methods", MethodCard, "expansion")
REFINE_FIELDS = ("query", "passages", "draft")
