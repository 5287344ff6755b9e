"""What all search agents share: the settings, and a run of them, which has one conversation for each query."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from r2med.data import Dataset, Query
from r2med.data.dataset_word import DatasetWord
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.core.search_steps import SearchStep
from r2med.foundation.core.spec import decoded
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Retrieving, Stage, argument, modules_of, with_inside
from r2med.models.llm.chat import ChatRequest, Failure, Sampling
from r2med.models.llm.costs import (
    answers_cost,
    approximate_tokens,
    failure_notices,
)
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.llm.llm_needs import INSTRUCTION_TOKENS, llm_needs
from r2med.models.prompts.prompted_stage import OpenedLLM, PromptedStage
from r2med.models.prompts.templates import Templates, kind_of, open_templates
from r2med.systems.agents.agent_loop import (
    MAX_TEMPLATE_TOKENS,
    Dialogue,
    Finished,
    SpendingLimit,
    chat_template,
    converse,
)
from r2med.systems.agents.agent_state import (
    SHOWN_WORDS,
    Agent,
    AgentTurn,
    Answered,
    Chosen,
    Conversation,
    totals,
    trace,
)
from r2med.systems.agents.remote_search import RemoteSearch, RemoteURL
from r2med.systems.agents.sources import LocalSearch
from r2med.systems.expand.expansion import cut_notice
from r2med.systems.retrieve.bm25 import BM25

MAX_TURNS = 1000
MAX_TOPK = 1000


class AgentStage(PromptedStage):
    """What a conversation needs to know of any agent. Subclasses declare the settings."""

    author_sampling: ClassVar[Mapping[str, Any]] = {}
    """Sampling settings by the authors of the agent."""
    reading_sampling: ClassVar[Mapping[str, Any]] = {}
    """Sampling settings that differ when documents are read in a separate call."""

    @abstractmethod
    def source(self, runtime: Runtime) -> LocalSearch | RemoteSearch:
        """Return what the agent searches: a server, or a corpus with a retriever of ours."""

    def varies(self, runtime: Runtime) -> bool:
        """Return True if another run can take another way: the LLM varies, or what it searches."""
        opened = self.opened(runtime)
        temperatures = {self.sampling(opened, reads).temperature for reads in (False, True)}
        return self.source(runtime).varies or any(map(opened.chat.varies, temperatures))

    def sampling(self, opened: OpenedLLM, reads: bool = False) -> Sampling:
        """Return the sampling settings of the agent's authors, as far as the LLM's API accepts them.

        With `reads` they are those for a separate call that reads documents.
        """
        card = opened.card
        # At most half of the context, because a turn that fills all of it leaves no room for the next one.
        limit = min(self.turn_tokens(card), card.context_length // 2)
        sampling = replace(sampling_of(card), max_tokens=limit)
        if card.api_style == "reasoning":
            return sampling
        penalty = {} if card.agent_repetition_penalty is None else {"repetition_penalty": card.agent_repetition_penalty}
        wanted = {**penalty, **self.author_sampling, **(self.reading_sampling if reads else {})}
        if opened.chat.key().get("endpoint") == "":
            # OpenAI is the only endpoint without an address. It refuses settings that its protocol does not have.
            wanted = {name: value for name, value in wanted.items() if name not in ("top_k", "repetition_penalty")}
        return replace(sampling, **wanted)

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules of the retriever that the agent searches with."""
        source = self.source(runtime)
        return modules_of(source.by, runtime) if isinstance(source, LocalSearch) else ()

    @property
    def template_names(self) -> list[str]:
        """The names of the templates that the agent uses, without a kind."""
        return ["system", self.template_name]

    def check(self, datasets: Sequence[Dataset], runtime: Runtime) -> None:
        """Raise UserError for a fault on one of these datasets, also of the retriever that the agent searches with."""
        super().check(datasets, runtime)
        source = self.source(runtime)
        for stage in with_inside(source.by, runtime) if isinstance(source, LocalSearch) else ():
            stage.check(datasets, runtime)

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. Templates are given by their digest."""
        key = super().key(dataset, runtime)
        for name in ("by", "corpus", "remote", "template"):  # given by their meaning
            key.pop(name, None)
        return {**key, **AgentRun(self, dataset, runtime).key()}

    def conversation_needs(self, size: Size, runtime: Runtime) -> Needs:
        """Return the calls of the conversations at most. The LLM decides how many it makes, so none is usual."""
        card = self.llm_card(runtime.setup)
        answer = min(self.turn_tokens(card), card.context_length // 2)
        start = INSTRUCTION_TOKENS + size.query_tokens + approximate_tokens(self.tools())
        grown = (start + turn * self.growth(card) for turn in range(self.max_calls))
        read = size.queries * sum(min(prompt, card.context_length - answer) for prompt in grown)
        card = card.model_copy(update={"max_tokens": answer})
        return llm_needs(str(self), card, runtime.setup, None, 0, (size.queries * self.max_calls, read))

    def search_needs(self, by: Stage, size: Size, runtime: Runtime, own: int = 0) -> list[Needs]:
        """Return what the searches of the conversations need, and `own` further ones for each query."""
        source = self.source(runtime)
        if not isinstance(source, LocalSearch):
            return by.needs(size.times(own), runtime) if own else []
        needs = by.needs(size.times(self.max_searches + own), runtime)
        return [_at_most(need) if need.most_calls else need for need in needs]

    def example(self, dataset: Dataset, runtime: Runtime) -> ChatRequest | None:
        """Return the first request of the first conversation."""
        return AgentRun(self, dataset, runtime).example() if self.asks(runtime) else None

    @property
    @abstractmethod
    def max_calls(self) -> int:
        """Maximum number of LLM calls in a conversation."""

    @property
    @abstractmethod
    def search_depth(self) -> int:
        """Number of documents of a search."""

    @property
    @abstractmethod
    def max_searches(self) -> int:
        """Maximum number of searches in a conversation."""

    @property
    def template_name(self) -> str:
        """The name of the prompt template."""
        return self.name

    @property
    def gives_answer(self) -> bool:
        """True if the agent answers the question. Otherwise it only finds documents, or writes a text to search."""
        return False

    @property
    def steps(self) -> tuple[SearchStep, ...]:
        """How far documents can come with this agent, if it answers: without tools it cannot open or keep them."""
        return ("returned", "shown")

    def spent_limit(self, card: LLMCard) -> SpendingLimit:
        """Return the largest number of tokens and dollars of a conversation."""
        return SpendingLimit()

    def tools(self) -> str:
        """Return the tools that are offered in each request, as in `ChatRequest`."""
        return ""

    def raw_template(self, card: LLMCard) -> str:
        """Return the chat template of a raw text; empty if messages are sent."""
        return ""

    def growth(self, card: LLMCard) -> int:
        """Return the maximum number of tokens by which a transcript grows in a turn."""
        return card.context_length

    @abstractmethod
    def turn_tokens(self, card: LLMCard) -> int:
        """Return the maximum number of tokens of a turn."""

    @abstractmethod
    def agent(self, templates: Templates, kind: str, card: LLMCard, room: int) -> Agent:
        """Return the agent for one kind of task. `room` is the maximum number of tokens of a separate prompt."""


class TaggedAgent(AgentStage):
    """The settings that Search-R1 and Search-o1 share, whether their text or their finds are used."""

    llm: str = argument("the LLM that searches and writes, or whose recorded texts are read")
    turns: int = Field(ge=1, le=MAX_TURNS, description="maximum number of turns of the LLM")
    topk: int = Field(ge=1, le=MAX_TOPK, description="number of documents that a search returns")
    via: Literal["chat", "completion"] = Field(
        "chat", description="chat: send messages; completion: send one raw text that the LLM continues"
    )
    template: str = Field("", description="the chat template of the raw text; empty: that of the LLM's card")
    by: Retrieving = Field(default_factory=BM25, description="the retriever that the agent searches with")

    @model_validator(mode="after")
    def _template_is_used(self) -> Self:
        if self.template:
            chat_template(self.template)
            if self.via != "completion":
                raise ValueError(f"template={self.template} needs via=completion: a chat server uses its own template")
        return self

    @property
    def search_depth(self) -> int:
        """Number of documents of a search."""
        return self.topk

    def raw_template(self, card: LLMCard) -> str:
        """Return the chat template of a raw text; empty if messages are sent."""
        return (self.template or card.chat_template) if self.via == "completion" else ""


def _at_most(need: Needs) -> Needs:
    """Return the calls of searches without a usual number: the LLM of the agent decides how often it searches."""
    return replace(need, calls=None, read=None, written=None, dollars=None, seconds=None)


def source_of(
    runtime: Runtime, by: Stage, remote: RemoteURL | None = None, corpus: str = ""
) -> LocalSearch | RemoteSearch:
    """Return what an agent searches: a server, or a corpus with a retriever of ours."""
    if remote:
        return RemoteSearch(remote, repeat=runtime.setup.repeat)
    return LocalSearch(by, runtime, str(DatasetWord.typed(decoded(corpus))) if corpus else "")


class AgentRun:
    """An agent with its LLM and what it searches, for the queries of one dataset. `converse` asks."""

    def __init__(self, stage: AgentStage, dataset: Dataset, runtime: Runtime) -> None:
        self.stage = stage
        self.dataset = dataset
        self.source = stage.source(runtime)
        self._opened = stage.opened(runtime)
        self._runtime = runtime
        kind, card = kind_of(dataset), self._opened.card
        self._templates = open_templates(self._opened.prompts, [kind])
        system = self._templates.template("system").text
        turn = stage.sampling(self._opened)
        room = card.context_length - (turn.max_tokens or 0) - approximate_tokens(system) - MAX_TEMPLATE_TOKENS
        self._agent = stage.agent(self._templates, kind, card, room)
        self._dialogue = Dialogue(
            system,
            turn,
            card.context_length,
            self._agent.stop,
            stage.raw_template(card),
            stage.sampling(self._opened, reads=True) if stage.reading_sampling else None,
            stage.tools(),
            stage.spent_limit(card),
        )

    @property
    def card(self) -> LLMCard:
        """The card of the LLM."""
        return self._opened.card

    def key(self) -> dict[str, Any]:
        """Return every setting that a score depends on, beside those of any stage that asks an LLM."""
        dialogue = self._dialogue
        return {
            **({"tools": dialogue.tools} if dialogue.tools else {}),
            "source": "agent",
            "sampling": asdict(dialogue.sampling),
            "reading": asdict(dialogue.reading) if dialogue.reading else None,
            "words": SHOWN_WORDS,
            "chat_template": dialogue.template,
            "templates": self._templates.digest,
            "search": self.source.key(self.dataset),
        }

    def example(self) -> ChatRequest | None:
        """Return the first request of the first conversation; None if it does not fit."""
        queries = self.dataset.queries[:1]
        return next((self._dialogue.request(self._agent.start(query.text)) for query in queries), None)

    def converse(self) -> Conversed:
        """Run a conversation for every query."""
        store = self._runtime.store.about(*self.source.labels())
        source = self.source.open(self.dataset, store, self.stage.search_depth)
        chat = self._opened.chat.about(*store.labels.datasets)
        return Conversed(self, converse(self._agent, self._dialogue, chat, source, self.dataset.queries))


@dataclass(frozen=True)
class Conversed:
    """The conversations about all queries of a dataset, and what is counted about them."""

    run: AgentRun
    finished: Finished

    @property
    def pairs(self) -> list[tuple[Query, Conversation]]:
        """Each query with its conversation."""
        return list(zip(self.run.dataset.queries, self.finished.conversations, strict=True))

    @property
    def turns(self) -> Iterator[AgentTurn]:
        """The turns of all conversations."""
        return (turn for conversation in self.finished.conversations for turn in conversation.turns)

    @property
    def failed(self) -> dict[str, Failure]:
        """Query id -> the failure that ended its conversation."""
        return {query.id: talk.state for query, talk in self.pairs if isinstance(talk.state, Failure)}

    @property
    def cut_texts(self) -> int:
        """Number of texts that the token limit cut."""
        return sum(isinstance(talk.state, Answered) and talk.state.cut for talk in self.finished.conversations)

    @property
    def counts(self) -> dict[str, float]:
        """The numbers of turns, searches and seconds, in total and per query."""
        conversations = self.finished.conversations
        sums, count = totals(conversations), len(conversations)
        statuses = Counter(turn.status for turn in self.turns if turn.status)
        chosen = sum(isinstance(talk.state, Chosen | Answered) for talk in conversations)
        return {
            "turns": sums["turns"],
            "searches": sums["searches"],
            "turns_per_query": sums["turns"] / count,
            "searches_per_query": sums["searches"] / count,
            "seconds_per_query": sums["seconds"] / count,
            "search_seconds": self.finished.searching.seconds,
            **({"finished": chosen} if statuses else {}),
            **{f"calls_{status}": count for status, count in sorted(statuses.items())},
        }

    @property
    def cost(self) -> Cost:
        """The cost of the answers of the LLM and of the searches."""
        cut = sum(turn.cut for turn in self.turns)
        return answers_cost(self.finished.answers, self.run.card, cut) + self.finished.searching

    def trace(self, conversation: Conversation, finds: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the trace of a conversation. `finds` is the ranking that it gives; None if it gives a text."""
        stage = self.run.stage
        steps = stage.steps if stage.gives_answer else ()
        return trace(conversation, texts=self.run.source.keeps_texts, finds=finds, steps=steps)

    def notices(self, failures: Sequence[Failure], outcome: str) -> tuple[str, ...]:
        """Return remarks for the user. `outcome` says what became of queries whose conversation failed."""
        stage, dataset = self.run.stage, self.run.dataset
        lines = failure_notices(f"{len(failures)} of {len(dataset.queries)} queries {outcome}", failures)
        statuses = {turn.status for turn in self.turns}
        if stage.tools() and statuses and statuses <= {"no_call", "cut"}:
            lines.append("the LLM made no tool call; if it has none, give the setting calls=tags")
        if cut := self.cut_texts:
            lines.append(cut_notice(cut, len(dataset.queries)))
        notices = [f"{stage} on {dataset.name}: {line}" for line in lines]
        if self.run.source.keeps_texts and (foreign := self._foreign()):
            notices.append(f"{stage}: the search server returned {foreign} outside the corpus of {dataset.name}")
        return (*notices, *self.finished.report.notices)

    def _foreign(self) -> str:
        """Return how many of the shown documents the dataset does not have, in words; empty if it has them all."""
        shown = list(dict.fromkeys(hit.id for turn in self.turns for hit in turn.documents or ()))
        missing = int((self.run.dataset.corpus.rows(shown) < 0).sum()) if shown else 0
        return f"{missing} of {len(shown)} documents" if missing else ""
