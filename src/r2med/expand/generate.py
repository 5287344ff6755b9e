"""Expansion by an LLM. Methods differ in their cards, but share the code for samples and rounds of refinement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources.abc import Traversable
from typing import Any, Self

from pydantic import Field, model_validator

from r2med.core.cost import Cost, total
from r2med.core.foreign_code import key_of
from r2med.core.stage_plan import PlannedData, StagePlan
from r2med.core.stages import Retrieving, Stage, argument
from r2med.data import Dataset
from r2med.expand.expansion import Expander, Expansion, JoiningChoice, QueryChoice, cut_notice
from r2med.expand.method_cards import MAX_ROUNDS, MAX_SAMPLES, METHODS, REFINE_FIELDS, MethodCard
from r2med.expand.recorded import RECORDED, open_recorded, plan_texts
from r2med.llm.chat import ChatRequest, Failure, Generation
from r2med.llm.costs import CostPreview, answers_cost, failed_queries, failure_kinds, failure_notices
from r2med.llm.journaled import open_chat
from r2med.llm.llm_cards import Cleaning, resolve_llm, sampling_of
from r2med.prompts.fitting import Fitted, Fitter, first_words
from r2med.prompts.prompt_sets import PROMPTS_MEANING, find_set
from r2med.prompts.templates import Prompted, Template, kind_of, open_templates
from r2med.retrieve.bm25 import BM25, BM25Retriever
from r2med.retrieve.retriever import Retriever, Search, SearchQuery, cached_search
from r2med.retrieve.run import NO_DOCUMENT
from r2med.runtime.runtime import Runtime
from r2med.store import Store


class Generated(Stage, kind="expand", needs="llm"):
    """Let an LLM write what a relevant document could say, and search with that text."""

    llm: str = argument("the LLM that writes, or whose recorded texts are read")
    samples: int = Field(
        1, ge=1, le=MAX_SAMPLES, description="texts per query: joined for word matching, averaged as vectors"
    )
    rounds: int = Field(
        0, ge=0, le=MAX_ROUNDS, description="times that the LLM sees the search results of its text and rewrites it"
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

    @model_validator(mode="after")
    def _searches_between_rounds(self) -> Self:
        if "by" in self.model_fields_set and self.by != BM25() and not self.rounds:
            raise ValueError(f"by={self.by} searches between rounds, but rounds=0: give rounds=1 or more")
        return self

    def settings(self) -> dict[str, Any]:
        """Return every declared value. `joining` is listed only if set, so that older keys stay valid."""
        declared = super().settings()
        return declared if self.joining else {name: value for name, value in declared.items() if name != "joining"}

    @classmethod
    def defaults(cls, name: str) -> Mapping[str, Any]:
        """Return the default settings from the card of a method."""
        return METHODS.card(name).defaults.model_dump()

    @classmethod
    def summary(cls, name: str) -> str:
        """Return the description of a method from its card."""
        return METHODS.card(name).summary

    @property
    def card(self) -> MethodCard:
        """The card of the method."""
        return METHODS.card(self.name)

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[StagePlan]:
        """Return the plan: LLM calls or recorded texts, and the searches."""
        texts = plan_texts(self, self.llm, runtime.setup, asked=self.card.asked)
        if texts.work == RECORDED:
            return [texts]
        first = BM25().plan(data, runtime) if "passages" in self.card.fields else []
        return [texts, *first, *(self.by.plan(data, runtime) if self.rounds else [])]

    def bind(self, runtime: Runtime) -> Expander:
        """Return the reader of recorded texts, or the expander that calls the LLM. No LLM is called yet."""
        joining = self.card.joining.choose(self.query, self.joining)
        if recorded := open_recorded(
            self, self.llm, joining, runtime.setup, asked=self.card.asked, cleaning=self.cleaning
        ):
            return recorded
        card = self.card.llm_card(resolve_llm(self.llm, runtime.setup)).model_copy(update={"cleaning": self.cleaning})
        prompts = find_set(self.prompts or runtime.setup.prompts)
        retrievers = self.by.bind(runtime), BM25().bind(runtime)
        return LLMExpander(self, open_chat(card, runtime), card, prompts, *retrievers)


@dataclass(frozen=True)
class Prompts:
    """The templates of one method for one kind of task."""

    system: str
    ask: Template
    examples: str
    refine: Template | None
    hash: str


def open_prompts(method: MethodCard, kind: str, folder: Traversable | None = None, *, refine: bool = False) -> Prompts:
    """Return the templates and sampling for LLM calls. Files of a set have priority over built-in ones."""
    templates = open_templates(folder, [kind])
    system = templates.template("system")
    ask = templates.template(method.prompt, kind, method.fields)
    examples = templates.read(templates.name_of("examples", kind))[1] if ask.names("examples") else ""
    refining = templates.template(method.refine, kind, REFINE_FIELDS) if refine else None
    return Prompts(system.text, ask, examples, refining, templates.hash)


@dataclass(frozen=True)
class _Prepared:
    """Prompts before they are sent, sample by sample, each with the queries in order."""

    prompts: tuple[Fitted | Failure, ...]
    """The prompt of each query, or a failure if even the bare query does not fit."""
    requests: tuple[ChatRequest, ...]
    """The prompts that fit."""
    cost: Cost
    """The cost of searching for the passages in the prompts."""
    searches: tuple[Search, ...] = ()
    """The texts that were searched for to refine drafts."""

    @property
    def cut(self) -> int:
        """Number of prompts with parts left out."""
        return sum(isinstance(prompt, Fitted) and prompt.cut for prompt in self.prompts)


@dataclass(frozen=True)
class LLMExpander(Prompted[Generated]):
    """One expansion method with one LLM."""

    by: Retriever
    """The retriever that searches between rounds."""
    first: Retriever = field(default_factory=lambda: BM25Retriever(BM25()))
    """The retriever of the passages that a method shows before the first round."""

    @property
    def method(self) -> MethodCard:
        """The card of the method."""
        return self.stage.card

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on. Templates are given by their hash."""
        method = self.method.model_dump(mode="json", exclude={"summary", "defaults"})
        by = {"by": key_of(self.by, dataset)} if self.stage.rounds else {}
        candidates = {"candidates": key_of(self.first, dataset)} if "passages" in self.method.fields else {}
        return {
            **self.settings(dataset),
            "source": "generated",
            "method": method,
            "templates": self._prompts(dataset).hash,
            **candidates,
            **by,
        }

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise UserError for a fault on one of these datasets: wrong templates, or no room for a prompt."""
        super().check(datasets)
        Fitter(self.card, system="")

    @property
    def template_names(self) -> list[str]:
        """The names of the templates that it uses, without a kind."""
        examples = ["examples"] if "examples" in self.method.fields else []
        refine = [self.method.refine] if self.stage.rounds else []
        return ["system", self.method.prompt, *examples, *refine]

    def preview(self, dataset: Dataset, store: Store) -> CostPreview:
        """Return the calls before any round of refinement. Passages are searched for, but no LLM is called."""
        prepared = self._drafts(dataset, store)
        rounds = self.stage.rounds
        return CostPreview.of(
            self.llm,
            self.card,
            prepared.requests,
            keep_cut=True,
            cut=prepared.cut,
            unfit=sum(isinstance(prompt, Failure) for prompt in prepared.prompts),
            note=f"about {rounds + 1} times that with its rounds of refinement" if rounds else "",
        )

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Call the LLM for every query. A query without any text is searched unchanged."""
        if not dataset.queries:
            return Expansion.of(())
        prepared = [self._drafts(dataset, store)]
        kept = self._ask(prepared[0])
        asked = [query.id for query in dataset.queries] * self.stage.samples
        answered = list(zip(asked, kept, strict=True))
        texts = [_text(answer) for answer in kept]
        for _ in range(self.stage.rounds):
            prepared.append(self._refinement(dataset, texts, store))
            refined = self._ask(prepared[-1])
            answered += [(query, new) for query, new, draft in zip(asked, refined, texts, strict=True) if draft]
            # A draft whose refinement failed is still an answer to the query.
            kept = [new if _text(new) else old for new, old in zip(refined, kept, strict=True)]
            texts = [_text(answer) for answer in kept]
        answers = [answer for _, answer in answered]
        cut_prompts = sum(part.cut for part in prepared)
        cut_texts = sum(isinstance(answer, Generation) and answer.finish_reason == "length" for answer in kept)
        joining = self.method.joining.choose(self.stage.query, self.stage.joining)
        size = len(dataset.queries)
        queries = [joining.join(query, texts[index::size]) for index, query in enumerate(dataset.queries)]
        return Expansion.of(
            queries,
            cost=answers_cost(answers, self.card, cut_prompts) + total(part.cost for part in prepared),
            failure_kinds=failure_kinds(answers),
            failed=failed_queries(answered),
            cut_texts=cut_texts,
            notices=self._notices(dataset.name, queries, answers, cut_prompts, cut_texts),
            searches=tuple(search for part in prepared for search in part.searches),
        )

    def _prompts(self, dataset: Dataset) -> Prompts:
        return open_prompts(self.method, kind_of(dataset), self.prompts, refine=self.stage.rounds > 0)

    def _drafts(self, dataset: Dataset, store: Store) -> _Prepared:
        """Return the first prompt of every query, once per sample."""
        prompts = self._prompts(dataset)
        fitter = Fitter(self.card, prompts.system)
        candidates: list[list[str]] = [[] for _ in dataset.queries]
        cost = Cost()
        if prompts.ask.names("passages"):
            plain = [SearchQuery(query) for query in dataset.queries]
            candidates, cost = self._passages(self.first, dataset, plain, store)
        # From here on only the text of a query is used, so that nothing else of it can get into a prompt.
        fitted = [
            fitter.fill(prompts.ask, query.text, prompts.examples, passages)
            for query, passages in zip(dataset.queries, candidates, strict=True)
        ]
        return self._prepared([fitted] * self.stage.samples, cost)

    def _refinement(self, dataset: Dataset, drafts: Sequence[str], store: Store) -> _Prepared:
        """Return the prompts that show each draft with its search results. Queries without a draft are not refined."""
        prompts = self._prompts(dataset)
        assert prompts.refine is not None
        fitter = Fitter(self.card, prompts.system)
        size = len(dataset.queries)
        joining = self.method.joining.choose(self.stage.query, self.stage.joining)
        cost, rows, made = Cost(), [], []
        for sample in range(self.stage.samples):
            own = drafts[sample * size : (sample + 1) * size]
            searches = [joining.join(query, [draft]) for query, draft in zip(dataset.queries, own, strict=True)]
            passages, searched = self._passages(self.by, dataset, searches, store)
            cost += searched
            made.append(Search(self.by, dataset, tuple(searches), self.method.passages.depth))
            rows.append(
                [
                    fitter.fill(prompts.refine, query.text, passages=shown, draft=draft) if draft else NO_DRAFT
                    for query, draft, shown in zip(dataset.queries, own, passages, strict=True)
                ]
            )
        return replace(self._prepared(rows, cost), searches=tuple(made))

    def _passages(
        self, retriever: Retriever, dataset: Dataset, queries: Sequence[SearchQuery], store: Store
    ) -> tuple[list[list[str]], Cost]:
        """Return the starts of the best documents of each query, best first, and the cost of the search."""
        shown = self.method.passages
        searched = cached_search(retriever, dataset, queries, shown.depth, store)
        texts = [dataset.corpus.texts(rows[rows != NO_DOCUMENT]) for rows in searched.run.rows]
        return [[first_words(text, shown.words) for text in row] for row in texts], searched.cost

    def _prepared(self, rows: Sequence[Sequence[Fitted | Failure]], cost: Cost) -> _Prepared:
        sampling = sampling_of(self.card)
        requests = [
            ChatRequest(prompt.messages, sampling, sample)
            for sample, prompts in enumerate(rows)
            for prompt in prompts
            if isinstance(prompt, Fitted)
        ]
        return _Prepared(tuple(prompt for prompts in rows for prompt in prompts), tuple(requests), cost)

    def _ask(self, prepared: _Prepared) -> list[Generation | Failure]:
        answered = iter(self.llm.complete(prepared.requests, keep_cut=True) if prepared.requests else ())
        return [prompt if isinstance(prompt, Failure) else _checked(next(answered)) for prompt in prepared.prompts]

    def _notices(
        self,
        dataset: str,
        queries: Sequence[SearchQuery],
        answers: Sequence[Generation | Failure],
        cut_prompts: int,
        cut_texts: int,
    ) -> tuple[str, ...]:
        bare = sum(not query.generated for query in queries)
        failed = sum(isinstance(answer, Failure) for answer in answers)
        what = f"{bare} of {len(queries)} queries got no text and are searched as they are"
        lines = failure_notices(what if bare else f"{failed} answers failed", answers)
        if cut_texts:
            lines.append(cut_notice(cut_texts, self.stage.samples * len(queries)))
        if cut_prompts:
            lines.append(f"{cut_prompts} prompts have shortened passages to fit {self.card.context_length} tokens")
        return tuple(f"{self.name} on {dataset}: {line}" for line in lines)


NO_DRAFT = Failure("empty", "there is no draft to refine", attempts=0)


def _checked(answer: Generation | Failure) -> Generation | Failure:
    """Return the answer. An answer without content is a failure."""
    if isinstance(answer, Failure) or answer.text.strip():
        return answer
    return Failure.of(answer, "empty", "an empty answer")


def _text(answer: Generation | Failure) -> str:
    return answer.text.strip() if isinstance(answer, Generation) else ""
