"""Expansion by an LLM: HyDE, Query2Doc and LameR on one path, several samples, and rounds of refinement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from r2med.data.dataset import Dataset, Query
from r2med.errors import UserError, nearest
from r2med.expand.contracts import Expansion, joined
from r2med.expand.passages import DEPTH, WORDS, top_passages
from r2med.expand.templates import Prompts, open_prompts
from r2med.llm.account import failure_kinds, reasons, usage_of
from r2med.llm.contracts import ChatModel, ChatRequest, Failure, Generation
from r2med.llm.llm_cards import LLMCard
from r2med.llm.open import sampling_of
from r2med.prompts.fitting import Fitted, Fitter
from r2med.prompts.templates import kind_of, open_templates
from r2med.retrieve.bm25 import BM25
from r2med.retrieve.retriever import Retriever, SearchQuery
from r2med.spec import Call
from r2med.store import Store

GENERATED = ("hyde", "query2doc", "lamer")
"""Methods that ask an LLM once. They differ in what their templates name (`templates.FIELDS`), and in nothing else."""


@dataclass(frozen=True)
class Settings:
    """Variants of a method."""

    samples: int = 1
    """Texts for each query: joined for word matching, their vectors averaged for dense retrievers."""
    rounds: int = 0
    """How often the model sees what its text found, and writes it again."""
    query: str = ""
    """Keep or drop the original query in a search by words; empty: as the method has it."""
    prompts: Path | None = None
    """A folder of the user's own templates; those it does not have are ours."""

    def __post_init__(self) -> None:
        for name, value, least in (("samples", self.samples, 1), ("rounds", self.rounds, 0)):
            if value < least:
                raise UserError(f"{name} must be {least} or more, not {value}")


@dataclass(frozen=True)
class Prepared:
    """Requests before they are asked, sample after sample, each with the queries in their order."""

    prompts: tuple[Fitted | Failure, ...]
    """A failure where even the bare query does not fit."""
    requests: tuple[ChatRequest, ...]
    """Without those that do not fit; each round of refinement asks about as many again."""

    @property
    def cut(self) -> int:
        """Prompts that something was left out of."""
        return sum(isinstance(prompt, Fitted) and prompt.cut for prompt in self.prompts)


@dataclass(frozen=True)
class Generated:
    """One method with one LLM. `by` is what searches between rounds."""

    method: str
    llm: ChatModel
    card: LLMCard
    settings: Settings = field(default_factory=Settings)
    by: Retriever = field(default_factory=BM25)

    def __post_init__(self) -> None:
        if self.method not in GENERATED:
            raise UserError(f"no expansion {self.method!r}{nearest(self.method, GENERATED)}: {', '.join(GENERATED)}")
        joined(Query("", ""), (), self.method, self.settings.query)

    @property
    def name(self) -> str:
        """What one types to get it."""
        chosen, plain = self.settings, Settings()
        words = [("samples", chosen.samples), ("rounds", chosen.rounds), ("query", chosen.query)]
        changed = [(name, str(value)) for name, value in words if value != getattr(plain, name)]
        if chosen.rounds and str(by := getattr(self.by, "stage", self.by)) != "bm25":
            changed.append(("by", str(by)))
        return str(Call(self.method, (self.llm.name,), tuple(changed)))

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; templates by their hash."""
        searches = {"passages": DEPTH, "words": WORDS}
        candidates = {"candidates": {**BM25().describe(), **searches}} if self.method == "lamer" else {}
        between = {"by": {**self.by.describe(dataset), **searches}} if self.settings.rounds else {}
        return {
            "expansion": self.method,
            "llm": self.llm.name,
            "source": "generated",
            "model": self.llm.describe(),
            "sampling": asdict(sampling_of(self.card)),
            "context_length": self.card.context_length,
            "samples": self.settings.samples,
            "rounds": self.settings.rounds,
            "query": self.settings.query,
            "kind": kind_of(dataset),
            "templates": self._prompts(dataset).hash,
            **candidates,
            **between,
        }

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise for what would stop an expansion of one of these datasets, before the first question costs anything."""
        kinds = {kind_of(dataset) for dataset in datasets}
        open_templates(self.settings.prompts, kinds, every=True)
        for dataset in datasets:
            Fitter(self.card, self._prompts(dataset).system)

    def prepare(self, dataset: Dataset, store: Store) -> Prepared:
        """Return what would be asked first, for a dry run; candidates are searched, nothing is asked."""
        prompts = self._prompts(dataset)
        fitter = Fitter(self.card, prompts.system)
        candidates: list[list[str]] = [[] for _ in dataset.queries]
        if prompts.ask.names("passages"):
            candidates = top_passages(BM25(), dataset, [SearchQuery(query) for query in dataset.queries], store)
        # From here on a query is its text: nothing else of it can get into a prompt.
        fitted = [
            fitter.fit(prompts.ask, query.text, prompts.examples, passages)
            for query, passages in zip(dataset.queries, candidates, strict=True)
        ]
        return self._prepared([fitted] * self.settings.samples)

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Ask for every query; one without any text is searched as it is."""
        if not dataset.queries:
            return Expansion.of(())
        prepared = self.prepare(dataset, store)
        answers = self._ask(prepared)
        texts, cut = [_text(answer) for answer in answers], prepared.cut
        for _ in range(self.settings.rounds):
            prepared = self._refinement(dataset, texts, store)
            refined = self._ask(prepared)
            answers += [answer for answer, draft in zip(refined, texts, strict=True) if draft]
            # A draft whose refinement failed is still an answer to the question.
            texts = [_text(answer) or draft for answer, draft in zip(refined, texts, strict=True)]
            cut += prepared.cut
        size = len(dataset.queries)
        queries = [self._search_query(query, texts[place::size]) for place, query in enumerate(dataset.queries)]
        return Expansion.of(
            queries,
            usage=usage_of(answers, self.card, cut),
            failure_kinds=failure_kinds(answers),
            notices=self._notices(dataset.name, queries, answers, cut),
        )

    def _prompts(self, dataset: Dataset) -> Prompts:
        refine = self.settings.rounds > 0
        return open_prompts(self.method, kind_of(dataset), self.settings.prompts, refine=refine)

    def _refinement(self, dataset: Dataset, drafts: Sequence[str], store: Store) -> Prepared:
        """Return the requests that show each draft with what it finds; one that is not there is not refined."""
        prompts = self._prompts(dataset)
        assert prompts.refine is not None
        fitter, size = Fitter(self.card, prompts.system), len(dataset.queries)
        rows = []
        for sample in range(self.settings.samples):
            mine = drafts[sample * size : (sample + 1) * size]
            asked = [self._search_query(query, [draft]) for query, draft in zip(dataset.queries, mine, strict=True)]
            found = top_passages(self.by, dataset, asked, store)
            rows.append(
                [
                    fitter.fit(prompts.refine, query.text, passages=passages, draft=draft) if draft else NO_DRAFT
                    for query, draft, passages in zip(dataset.queries, mine, found, strict=True)
                ]
            )
        return self._prepared(rows)

    def _prepared(self, rows: Sequence[Sequence[Fitted | Failure]]) -> Prepared:
        sampling = sampling_of(self.card)
        requests = [
            ChatRequest(prompt.messages, sampling, sample)
            for sample, prompts in enumerate(rows)
            for prompt in prompts
            if isinstance(prompt, Fitted)
        ]
        return Prepared(tuple(prompt for prompts in rows for prompt in prompts), tuple(requests))

    def _ask(self, prepared: Prepared) -> list[Generation | Failure]:
        answered = iter(self.llm.complete(prepared.requests) if prepared.requests else ())
        return [prompt if isinstance(prompt, Failure) else _checked(next(answered)) for prompt in prepared.prompts]

    def _search_query(self, query: Query, texts: Iterable[str]) -> SearchQuery:
        written = tuple(filter(None, texts))
        return joined(query, written, self.method, self.settings.query)

    def _notices(
        self, dataset: str, queries: Sequence[SearchQuery], answers: Sequence[Generation | Failure], cut: int
    ) -> list[str]:
        bare, kinds = sum(not query.generated for query in queries), failure_kinds(answers)
        why = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        told = []
        if bare:
            told.append(f"{bare} of {len(queries)} queries got no text and are searched as they are ({why})")
        elif kinds:
            told.append(f"{sum(kinds.values())} answers failed ({why})")
        told += [f"{kind}: {reason}" for kind, reason in reasons(answers).items()]
        if cut:
            told.append(f"{cut} prompts were cut at their passages to fit {self.card.context_length} tokens")
        return [f"{self.name} on {dataset}: {line}" for line in told]


NO_DRAFT = Failure("empty", "there is no draft to refine", attempts=0)


def _checked(answer: Generation | Failure) -> Generation | Failure:
    """Return the answer; one that says nothing is none."""
    if isinstance(answer, Failure) or answer.text.strip():
        return answer
    return Failure("empty", "an empty answer", 1, answer.prompt_tokens, answer.completion_tokens, answer.seconds)


def _text(answer: Generation | Failure) -> str:
    return answer.text.strip() if isinstance(answer, Generation) else ""
