"""A search agent as an expander: its last text is what is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from r2med.agents.contracts import Agent, Answered, Conversation, Failed
from r2med.agents.dialogue import FRAME, Dialogue
from r2med.agents.limits import WORDS
from r2med.agents.loop import Talked, talk
from r2med.agents.reason_in_documents import Reader
from r2med.agents.search_o1 import SearchO1
from r2med.agents.search_r1 import SearchR1
from r2med.agents.settings import DEFAULTS, Settings, sampling
from r2med.agents.sources import Searchable
from r2med.agents.trace import totals, trace
from r2med.data.dataset import Dataset, Query
from r2med.expand.contracts import Expansion
from r2med.llm.account import failure_kinds, reasons, usage_of
from r2med.llm.contracts import ChatModel, ChatRequest, Failure
from r2med.llm.llm_cards import LLMCard
from r2med.llm.tokens import approximate_tokens
from r2med.prompts.templates import Templates, kind_of, open_templates
from r2med.retrieve.retriever import SearchQuery
from r2med.spec import Call
from r2med.store import Store


@dataclass(frozen=True)
class SearchAgent:
    """One kind of agent with one LLM, over one thing to search."""

    method: str
    llm: ChatModel
    card: LLMCard
    source: Searchable
    settings: Settings

    @property
    def name(self) -> str:
        """What one types to get it."""
        changed = self.settings.changed(DEFAULTS[self.method])
        return str(Call(self.method, (self.llm.name,), (*changed, *self.source.settings)))

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; templates by their hash."""
        _, dialogue, templates = self._opened(dataset)
        return {
            "expansion": self.method,
            "llm": self.llm.name,
            "source": "agent",
            "model": self.llm.describe(),
            "sampling": asdict(dialogue.sampling),
            "context_length": self.card.context_length,
            "turns": self.settings.turns,
            "searches": self.settings.searches,
            "topk": self.settings.topk,
            "words": WORDS,
            "via": self.settings.via,
            "chat_template": dialogue.template,
            "kind": kind_of(dataset),
            "templates": templates.hash,
            "search": self.source.describe(dataset),
        }

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise for what would stop an expansion of one of these datasets, before the first question costs anything."""
        open_templates(self.settings.prompts, {kind_of(dataset) for dataset in datasets}, every=True)
        for dataset in datasets:
            self._opened(dataset)
            self.source.describe(dataset)

    def opening(self, dataset: Dataset) -> list[ChatRequest]:
        """Return the first request of every conversation: what is known of it before it is led."""
        agent, dialogue, _ = self._opened(dataset)
        asked = [dialogue.request(agent.start(query.text)) for query in dataset.queries]
        return [request for request in asked if request is not None]

    @property
    def most_calls(self) -> int:
        """How many calls of the LLM a conversation can take."""
        if self.method == "search-r1":
            return self.settings.turns + 1  # the last with the search off
        return self.settings.turns + min(self.settings.searches or self.settings.turns, self.settings.turns - 1)

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Lead a conversation for every query; one that never answered is searched as it is, and counted."""
        if not dataset.queries:
            return Expansion.of(())
        agent, dialogue, _ = self._opened(dataset)
        source = self.source.open(dataset, store, self.settings.topk)
        talked = talk(agent, dialogue, self.llm, source, dataset.queries)
        ends = [conversation.wait for conversation in talked.conversations]
        failures = [Failure(end.kind, end.message) for end in ends if isinstance(end, Failed)]
        pairs = list(zip(dataset.queries, talked.conversations, strict=True))
        return Expansion.of(
            [self._search_query(query, conversation) for query, conversation in pairs],
            usage=self._usage(talked, source.usage()),
            failure_kinds=failure_kinds(failures),
            notices=[*self._notices(dataset, failures), *source.notices()],
            traces={query.id: trace(conversation, texts=self.source.elsewhere) for query, conversation in pairs},
        )

    def _opened(self, dataset: Dataset) -> tuple[Agent, Dialogue, Templates]:
        templates = open_templates(self.settings.prompts, [kind_of(dataset)])
        system = templates.template("system").text
        drawn, one_text = sampling(self.method, self.card, self.llm), self.settings.via == "completion"
        ask = templates.template(self.method, kind_of(dataset))
        agent: Agent
        if self.method == "search-r1":
            agent = SearchR1(ask, self.settings.turns)
        else:
            room = self.card.context_length - (drawn.max_tokens or 0) - approximate_tokens(system) - FRAME
            reader = Reader(templates.template("search-o1-documents"), room)
            searches = self.settings.searches or self.settings.turns
            agent = SearchO1(ask, reader, self.card, self.settings.turns, searches, one_text)
        template = (self.settings.template or self.card.chat_template) if one_text else ""
        return agent, Dialogue(system, drawn, self.card.context_length, agent.stop, template), templates

    def _search_query(self, query: Query, conversation: Conversation) -> SearchQuery:
        end = conversation.wait
        return SearchQuery(query, (end.text,)) if isinstance(end, Answered) else SearchQuery(query)

    def _usage(self, talked: Talked, search: dict[str, float]) -> dict[str, float]:
        cut = sum(turn.cut for conversation in talked.conversations for turn in conversation.turns)
        sums, count = totals(talked.conversations), len(talked.conversations)
        asked = usage_of(talked.answers, self.card, cut)
        return {
            **asked,
            "cost_usd": asked["cost_usd"] + search.get("cost_usd", 0.0),
            "search_seconds": search.get("search_seconds", 0.0),
            "turns": sums["turns"],
            "searches": sums["searches"],
            "turns_per_query": sums["turns"] / count,
            "searches_per_query": sums["searches"] / count,
            "seconds_per_query": sums["seconds"] / count,
        }

    def _notices(self, dataset: Dataset, failures: Sequence[Failure]) -> list[str]:
        if not failures:
            return []
        why = ", ".join(f"{count} {kind}" for kind, count in failure_kinds(failures).items())
        bare = f"{len(failures)} of {len(dataset.queries)} queries got no answer and are searched as they are ({why})"
        told = [bare, *(f"{kind}: {reason}" for kind, reason in reasons(failures).items())]
        return [f"{self.name} on {dataset.name}: {line}" for line in told]
