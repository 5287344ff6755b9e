"""Search agents as expansions: the settings of all agents, and the expander that runs their conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from r2med.data import Dataset, Query
from r2med.data.corpus import Corpus
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.core.spec import decoded
from r2med.foundation.core.stages import Bound, Retrieving, Stage, argument, bound
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.call_plans import with_calls
from r2med.models.llm.chat import ChatRequest, Failure, Sampling
from r2med.models.llm.costs import (
    answers_cost,
    approximate_tokens,
    dollars,
    failed_queries,
    failure_kinds,
    failure_notices,
    plan_requests,
    request_tokens,
)
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import AnswerStyle, Cleaning, LLMCard, resolve_llm, sampling_of
from r2med.models.prompts.prompt_sets import PROMPTS_MEANING, find_set
from r2med.models.prompts.templates import Prompted, Templates, kind_of, open_templates
from r2med.systems.agents.agent_spans import add_conversation, conversation_spans
from r2med.systems.agents.conversation import (
    SHOWN_WORDS,
    Agent,
    AgentTurn,
    Answered,
    Chosen,
    Conversation,
    totals,
    trace,
)
from r2med.systems.agents.dialogue import MAX_TEMPLATE_TOKENS, Dialogue, Finished, chat_template, converse
from r2med.systems.agents.remote_search import RemoteSearch, RemoteURL
from r2med.systems.agents.sources import LocalSearch
from r2med.systems.expand.expansion import Expansion, Joining, QueryChoice, cut_notice
from r2med.systems.expand.recorded import RECORDED, open_recorded, plan_texts
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.finds import fused

MAX_TURNS = 1000
MAX_TOPK = 1000


def ranking_of(conversation: Conversation, corpus: Corpus) -> tuple[str, ...]:
    """Return the documents that the agent chose, in its order, then the others by reciprocal rank of its searches.

    Without a choice the searches alone decide. The ranking is empty if no search found a document of the corpus.
    """
    searches = [turn.documents for turn in conversation.turns if turn.documents is not None]
    found = fused([[hit.id for hit in documents] for documents in searches], corpus)
    chosen = conversation.state.ids if isinstance(conversation.state, Chosen) else ()
    known = set(found)  # A remote server may return documents that the corpus does not have.
    return tuple(dict.fromkeys([*(each for each in chosen if each in known), *found]))


class ConversingStage(Stage):
    """What an expander needs to know of any agent. Subclasses declare the settings."""

    author_sampling: ClassVar[Mapping[str, Any]] = {}
    """Sampling settings by the authors of the agent."""
    reading_sampling: ClassVar[Mapping[str, Any]] = {}
    """Sampling settings that differ when documents are read in a separate call."""

    @property
    def max_calls(self) -> int:
        """Maximum number of LLM calls in a conversation."""
        raise NotImplementedError(f"{type(self).__name__} has no max_calls")

    @property
    def search_depth(self) -> int:
        """Number of documents of a search."""
        raise NotImplementedError(f"{type(self).__name__} has no search_depth")

    def ranks(self) -> bool:
        """Return True if the agent gives a ranking of documents instead of a text."""
        return True

    def joining(self) -> Joining:
        """Return how the text of the agent is joined with the query."""
        return Joining()

    def tools(self) -> str:
        """Return the tools that are offered in each request, as in `ChatRequest`."""
        return ""

    def raw_template(self, card: LLMCard) -> str:
        """Return the chat template of a raw text; empty if messages are sent."""
        return ""

    def growth(self, card: LLMCard) -> int:
        """Return the maximum number of tokens by which a transcript grows in a turn."""
        return card.context_length

    def turn_tokens(self, card: LLMCard) -> int:
        """Return the maximum number of tokens of a turn."""
        raise NotImplementedError(f"{type(self).__name__} has no turn_tokens()")

    def agent(self, templates: Templates, kind: str, card: LLMCard, room: int) -> Agent:
        """Return the agent for one kind of task. `room` is the maximum number of tokens of a separate prompt."""
        raise NotImplementedError(f"{type(self).__name__} has no agent()")


class AgentStage(ConversingStage, kind="expand", needs="llm"):
    """The settings that agents share which write a text. A subclass adds its limits, sampling and `agent`."""

    answer_style: ClassVar[AnswerStyle | None] = None
    """How the answer is marked in recorded texts. None means as in the LLM's card."""

    llm: str = argument("the LLM that searches and writes, or whose recorded texts are read")
    turns: int = Field(ge=1, le=MAX_TURNS, description="maximum number of turns of the LLM")
    topk: int = Field(ge=1, le=MAX_TOPK, description="number of documents that a search returns")
    via: Literal["chat", "completion"] = Field(
        "chat", description="chat: send messages; completion: send one raw text that the LLM continues"
    )
    template: str = Field("", description="the chat template of the raw text; empty: that of the LLM's card")
    by: Retrieving = Field(default_factory=BM25, description="the retriever that the agent searches with")
    corpus: str = Field("", description="a dataset whose corpus is searched; empty: the dataset of the queries")
    remote: RemoteURL | None = Field(None, description="the URL of a /retrieve server to search with instead")
    query: QueryChoice = Field("", description="keep the query's own words in a search by words; empty: drop them")
    cleaning: Cleaning = Field(
        "strict",
        description="published: the answer follows the first marker, and a text without one counts whole",
    )
    prompts: str = Field("", description=PROMPTS_MEANING)
    give: Literal["text", "finds"] = Field(
        "text",
        description="text: search with the text that the agent ends with; finds: rank the documents that its "
        "searches found, by reciprocal rank, before those of the retriever",
    )

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.template:
            chat_template(self.template)
            if self.via != "completion":
                raise ValueError(f"template={self.template} needs via=completion: a chat server uses its own template")
        if self.remote and (self.corpus or self.by != BM25()):
            raise ValueError("remote= names a server that searches: by= and corpus= are for searches on this machine")
        if self.give == "finds" and (self.corpus or self.query):
            setting = f"corpus={self.corpus}" if self.corpus else f"query={self.query}"
            raise ValueError(f"{setting} is for give=text: give=finds ranks documents of the dataset's own corpus")
        return self

    @property
    def search_depth(self) -> int:
        """Number of documents of a search."""
        return self.topk

    def ranks(self) -> bool:
        """Return True if the agent gives a ranking of documents instead of a text."""
        return self.give == "finds"

    def joining(self) -> Joining:
        """Return how the text of the agent is joined with the query."""
        return Joining().choose(self.query)

    def raw_template(self, card: LLMCard) -> str:
        """Return the chat template of a raw text; empty if messages are sent."""
        return (self.template or card.chat_template) if self.via == "completion" else ""

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plan: LLM calls or recorded texts, and the searches, unless a remote server makes them."""
        texts = plan_texts(self, self.llm, runtime.setup)
        if texts.work != RECORDED:
            texts = with_calls(texts, resolve_llm(self.llm, runtime.setup), None, 0, runtime)
        if self.remote or texts.work == RECORDED:
            return [texts]
        if self.corpus:
            work = f"searches the corpus of {decoded(self.corpus)}; it is not known what is cached"
            return [texts, Plan(str(self.by), work)]
        return [texts, *self.by.plan(data, runtime)]

    def bind(self, runtime: Runtime) -> Bound[Any]:
        """Return the reader of recorded texts, or the expander that calls the LLM. Nothing is called yet."""
        if recorded := open_recorded(
            self, self.llm, self.joining(), runtime.setup, cleaning=self.cleaning, style=self.answer_style
        ):
            return recorded
        card = resolve_llm(self.llm, runtime.setup).model_copy(update={"cleaning": self.cleaning})
        source = source_of(runtime, self.by, self.remote, self.corpus)
        return AgentExpander(
            self, open_chat(card, runtime), card, find_set(self.prompts or runtime.setup.prompts), source
        )


def source_of(
    runtime: Runtime, by: Stage, remote: RemoteURL | None = None, corpus: str = ""
) -> LocalSearch | RemoteSearch:
    """Return what an agent searches: a server, or a corpus with a retriever of ours."""
    return RemoteSearch(remote) if remote else LocalSearch(bound(by, runtime), decoded(corpus), runtime.store)


@dataclass(frozen=True)
class AgentExpander(Prompted[ConversingStage]):
    """One agent with one LLM and one source to search.

    The retriever then searches with the agent's last text, or its documents follow those that the agent found.
    """

    asks: ClassVar[bool] = True

    source: LocalSearch | RemoteSearch

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on. Templates are given by their digest."""
        _, dialogue, templates = self._open(dataset)
        key = super().key(dataset)
        for named in ("by", "corpus", "remote", "template"):  # given by their meaning below
            key.pop(named, None)
        if dialogue.tools:
            key["tools"] = dialogue.tools
        return {
            **key,
            "source": "agent",
            "sampling": asdict(dialogue.sampling),
            "reading": asdict(dialogue.reading) if dialogue.reading else None,
            "words": SHOWN_WORDS,
            "chat_template": dialogue.template,
            "templates": templates.digest,
            "search": self.source.key(dataset),
        }

    def preview(self, dataset: Dataset, store: Store) -> Plan:
        """Return the first request of every conversation. The later ones are not known in advance."""
        agent, dialogue, _ = self._open(dataset)
        openings = [dialogue.request(agent.start(query.text)) for query in dataset.queries]
        requests = [request for request in openings if request is not None]
        most = self.stage.max_calls
        note = f"for the first calls only: each starts a conversation of up to {most} calls, and the prompts grow"
        unfit = len(openings) - len(requests)
        plan = plan_requests(self.card, requests, self.llm.unanswered(requests), unfit=unfit, note=note)
        price = sum(map(self._most_dollars, plan.requests))
        return replace(plan, conversation_calls=len(plan.requests) * most, conversation_dollars=price)

    def _most_dollars(self, opening: ChatRequest) -> float:
        """Return the maximum price of a conversation in dollars, if every turn is as long as it may be."""
        answer, start = opening.sampling.max_tokens or self.card.max_tokens, request_tokens(opening)
        grown = (start + number * self.stage.growth(self.card) for number in range(self.stage.max_calls))
        room = self.card.context_length - answer
        return sum(dollars(self.card, min(prompt, room), answer) for prompt in grown)

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Run a conversation for every query. A query without a text or documents is searched unchanged and counted."""
        if not dataset.queries:
            return Expansion.of(())
        agent, dialogue, _ = self._open(dataset)
        store = store.about(*self.source.labels())
        source, llm = self.source.open(dataset, store, self.stage.search_depth), self.llm.about(*store.labels.datasets)
        with conversation_spans(self.name, dataset.queries) as spans:
            finished = converse(agent, dialogue, llm, source, dataset.queries)
            pairs = list(zip(dataset.queries, finished.conversations, strict=True))
            for query, each in pairs:
                if query.id in spans:
                    add_conversation(spans[query.id], query, each)
        rankings = self._rankings(dataset, pairs)
        failed = {query.id: each.state for query, each in pairs if isinstance(each.state, Failure)}
        if rankings is not None:
            failed |= {query.id: NOT_FOUND for query, _ in pairs if query.id not in {**rankings, **failed}}
        failures = list(failed.values())
        joining = self.stage.joining()
        cut = sum(turn.cut for turn in _turns(finished.conversations))
        return Expansion.of(
            [joining.join(query, _texts(each) if rankings is None else ()) for query, each in pairs],
            rankings=rankings,
            cost=answers_cost(finished.answers, self.card, cut) + finished.searching,
            counts=_counts(finished),
            failure_kinds=failure_kinds(failures),
            failed=failed_queries(failed.items()),
            cut_texts=_cut_texts(finished.conversations),
            notices=self._notices(dataset, finished, failures),
            searches=source.made(finished.searched),
            traces={query.id: self._trace(conversation, rankings, query.id) for query, conversation in pairs},
        )

    def _rankings(
        self, dataset: Dataset, pairs: Sequence[tuple[Query, Conversation]]
    ) -> dict[str, tuple[str, ...]] | None:
        """Return the documents found for each query, if the agent gives a ranking. Queries without any are left out."""
        if not self.stage.ranks():
            return None
        rankings = {query.id: ranking_of(conversation, dataset.corpus) for query, conversation in pairs}
        return {query: ranking for query, ranking in rankings.items() if ranking}

    def _trace(
        self, conversation: Conversation, rankings: Mapping[str, tuple[str, ...]] | None, query: str
    ) -> dict[str, Any]:
        finds = None if rankings is None else rankings.get(query, ())
        return trace(conversation, texts=self.source.keeps_texts, finds=finds)

    def _open(self, dataset: Dataset) -> tuple[Agent, Dialogue, Templates]:
        kind = kind_of(dataset)
        templates = open_templates(self.prompts, [kind])
        system = templates.template("system").text
        sampling = self._sampling(self.stage.author_sampling)
        room = self.card.context_length - (sampling.max_tokens or 0) - approximate_tokens(system) - MAX_TEMPLATE_TOKENS
        agent = self.stage.agent(templates, kind, self.card, room)
        template = self.stage.raw_template(self.card)
        own = self.stage.reading_sampling
        reading = self._sampling({**self.stage.author_sampling, **own}) if own else None
        tools = self.stage.tools()
        dialogue = Dialogue(system, sampling, self.card.context_length, agent.stop, template, reading, tools)
        return agent, dialogue, templates

    def _sampling(self, by_authors: Mapping[str, Any]) -> Sampling:
        """Return the sampling settings: those of the agent's authors, as far as the LLM's API accepts them."""
        card = self.card
        # At most half of the context, because a turn that fills all of it leaves no room for the next one.
        limit = min(self.stage.turn_tokens(card), card.context_length // 2)
        sampling = replace(sampling_of(card), max_tokens=limit)
        if card.api_style == "reasoning":
            return sampling
        penalty = card.agent_repetition_penalty
        wanted = by_authors if penalty is None else {"repetition_penalty": penalty, **by_authors}
        if self.llm.key().get("endpoint") == "":
            # OpenAI is the only endpoint without an address. It refuses settings that its protocol does not have.
            wanted = {name: value for name, value in wanted.items() if name not in ("top_k", "repetition_penalty")}
        return replace(sampling, **wanted)

    def _notices(self, dataset: Dataset, finished: Finished, failures: Sequence[Failure]) -> tuple[str, ...]:
        count = f"{len(failures)} of {len(dataset.queries)} queries"
        if self.stage.ranks():
            what = f"{count} ended early: the documents found so far are ranked, the retriever's follow"
        else:
            what = f"{count} got no answer and are searched as they are"
        lines = failure_notices(what, failures)
        statuses = {turn.status for turn in _turns(finished.conversations)}
        if self.stage.tools() and statuses and statuses <= {"no_call", "cut"}:
            lines.append("the LLM made no tool call; if it has none, give the setting calls=tags")
        if cut := _cut_texts(finished.conversations):
            lines.append(cut_notice(cut, len(dataset.queries)))
        notices = [f"{self.name} on {dataset.name}: {line}" for line in lines]
        if self.source.keeps_texts and (foreign := _foreign(finished.conversations, dataset)):
            notices.append(f"{self.name}: the search server returned {foreign} outside the corpus of {dataset.name}")
        return tuple(notices)


NOT_FOUND = Failure("empty", "the agent found no document")


def _turns(conversations: Sequence[Conversation]) -> Iterator[AgentTurn]:
    return (turn for conversation in conversations for turn in conversation.turns)


def _texts(conversation: Conversation) -> tuple[str, ...]:
    return (conversation.state.text,) if isinstance(conversation.state, Answered) else ()


def _cut_texts(conversations: Sequence[Conversation]) -> int:
    ends = (conversation.state for conversation in conversations)
    return sum(isinstance(end, Answered) and end.cut for end in ends)


def _counts(finished: Finished) -> dict[str, float]:
    """Return the numbers of turns, searches and seconds, in total and per query."""
    sums, count = totals(finished.conversations), len(finished.conversations)
    statuses = Counter(turn.status for turn in _turns(finished.conversations) if turn.status)
    chosen = sum(isinstance(each.state, Chosen) for each in finished.conversations)
    return {
        "turns": sums["turns"],
        "searches": sums["searches"],
        "turns_per_query": sums["turns"] / count,
        "searches_per_query": sums["searches"] / count,
        "seconds_per_query": sums["seconds"] / count,
        "search_seconds": finished.searching.seconds,
        **({"finished": chosen} if statuses else {}),
        **{f"calls_{status}": count for status, count in sorted(statuses.items())},
    }


def _foreign(conversations: Sequence[Conversation], dataset: Dataset) -> str:
    """Return how many of the shown documents the dataset does not have, in words; empty if it has them all."""
    shown = list(dict.fromkeys(hit.id for turn in _turns(conversations) for hit in turn.documents or ()))
    missing = int((dataset.corpus.rows(shown) < 0).sum()) if shown else 0
    return f"{missing} of {len(shown)} documents" if missing else ""
