"""Steps that ask an LLM about each item and read a JSON object from its answer.

An unreadable answer is asked for again. After the last try the item is left out and counted. Nothing is guessed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field

from r2med.construction.items import Rejected, SourceQuestion, StreamItem
from r2med.construction.step import Step, StepWork, Streams
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.stages import argument
from r2med.foundation.engine.reporting import part_of
from r2med.foundation.engine.tracing import item_spans
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import digest
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.ask import warn_of_identifiers
from r2med.models.ask.json_answers import JsonAnswers, ask_json, json_question
from r2med.models.llm.costs import estimate, is_priced
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, resolve_llm
from r2med.models.prompts.fitting import Fitter
from r2med.models.prompts.templates import Template, read_template

ITEMS_PER_BLOCK = 512
"""Items that are asked about together. A block bounds the memory and keeps every connection busy."""

SYSTEM = "You are a careful medical editor. You answer with one JSON object and nothing else."

AskedItem = TypeVar("AskedItem")


class AskingStep(Step, Generic[AskedItem], kind="build", needs="llm"):
    """A step that asks an LLM about each item."""

    template: ClassVar[str]
    """Name of the prompt: a file in construction/prompts, or in the folder `prompts` of the plan."""
    answer: ClassVar[type[LLMAnswer]]
    """Model of the LLM's answer."""

    llm: str = argument("the LLM to ask", default="")
    prompts: str = Field("", description="Folder with your own prompt templates, beside the plan.")
    tries: int = Field(3, ge=1, le=10, description="Number of requests for an item before it counts as failed.")

    def asked(self, streams: Streams) -> Iterator[AskedItem]:
        """Yield the items to ask about."""
        raise NotImplementedError(f"{type(self).__name__} has no asked()")

    def fields(self, item: AskedItem) -> Mapping[str, str]:
        """Return the values of the template's fields. If the prompt is too long, `text` is cut."""
        raise NotImplementedError(f"{type(self).__name__} has no asked()")

    def answer_model(self, item: AskedItem) -> type[LLMAnswer]:
        """Return the model of the answer for this item."""
        return self.answer

    def read(self, item: AskedItem, answer: Any) -> StreamItem | Rejected:
        """Return the updated or rejected item. Raises ValueError if the answer does not fit the item."""
        raise NotImplementedError(f"{type(self).__name__} has no asked()")

    def item_id(self, item: AskedItem) -> str:
        """Return the id of an item, for traces. It contains no text of the item."""
        return item.key if isinstance(item, StreamItem) else ""

    def settled(self, item: AskedItem) -> StreamItem | Rejected | None:
        """Return the result for an item that needs no request; None for all other items."""
        return None

    def failed(self, item: AskedItem, kind: str) -> Rejected | None:
        """Return the item as rejected because no answer could be read; None if nothing should be kept."""
        return Rejected.of(item, "no usable answer", kind) if isinstance(item, StreamItem) else None

    def unread(self, item: AskedItem) -> StreamItem | None:
        """Return the item that a rehearsal passes on, where nothing is asked."""
        return item if isinstance(item, StreamItem) else None

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the output depends on, except the input streams."""
        chat = self.chat(runtime)
        prompt = digest(self.prompt(streams).text)
        return {**super().key(streams, runtime), "prompt": prompt, "llm": chat.key()}

    def prompt(self, streams: Streams) -> Template:
        """Return the prompt template: the user's if there is one, otherwise ours."""
        name = f"{self.template}.txt"
        own = streams.path(self.prompts) / name if self.prompts else None
        file = own if own is not None and own.is_file() else files("r2med.construction") / "prompts" / name
        return Template(str(file), read_template(file))

    def card(self, runtime: Runtime) -> LLMCard:
        """Return the card of the LLM. Raises UserError if no LLM is named or known."""
        if not (self.llm or runtime.setup.llm):
            raise UserError(
                f'{self.name} asks an LLM: name one with Setup(llm="NAME"), or with llm = "NAME" in the plan'
            )
        return resolve_llm(self.llm or runtime.setup.llm, runtime.setup)

    def chat(self, runtime: Runtime) -> JournaledChat:
        """Open the LLM. No request is sent."""
        return open_chat(self.card(runtime), runtime)

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Ask about each item. Items keep their order."""
        self.announce(streams, work)
        total = 0 if work.rehearsal else sum(1 for _ in self.asked(streams))
        yield from self.about(self.asked(streams), streams, work, total)

    def announce(self, streams: Streams, work: StepWork) -> None:
        """Store the prompt for the datasheet, and warn if personal data would be sent to a remote LLM."""
        chat = self.chat(work.runtime)
        work.facts["prompt"] = self.prompt(streams).text
        if not work.rehearsal:
            texts = (" ".join(self.fields(item).values()) for item in self.asked(streams) if not self.settled(item))
            warn_of_identifiers(self.name, chat, texts)

    def about(
        self, items: Iterator[AskedItem], streams: Streams, work: StepWork, total: int, begun: int = 0
    ) -> Iterator[StreamItem | Rejected]:
        """Ask about these items and yield one result for each, except for failed items that `failed` drops.

        `total` is the number of items of the whole step. `begun` is how many of them came before these.
        """
        chat, card = self.chat(work.runtime), self.card(work.runtime)
        fitter, template = Fitter(card, SYSTEM), self.prompt(streams)
        while block := list(itertools.islice(items, ITEMS_PER_BLOCK)):
            settled = {number: known for number, item in enumerate(block) if (known := self.settled(item))}
            questions = {
                number: json_question(fitter, template, self.fields(item), self.answer_model(item))
                for number, item in enumerate(block)
                if number not in settled
            }
            if work.rehearsal:
                requests = [each.request(card) for each in questions.values() if each.fits]
                unanswered = chat.unanswered(requests)
                work.estimate += estimate(unanswered, card)
                work.answered += len(set(requests)) - len(unanswered)
                work.unpriced |= not is_priced(card)
                yield from filter(None, (settled.get(number) or self.unread(item) for number, item in enumerate(block)))
            else:
                facts = {number: {"r2med.item": self.item_id(block[number])} for number in questions}
                with part_of(begun, total), item_spans(self.name, "CHAIN", facts, chat.trace) as spans:
                    asked = ask_json(
                        questions, lambda n, answer: self.read(block[n], answer), chat, card, self.tries, spans=spans
                    )
                yield from self._answered(block, settled, asked, work)
            begun += len(block)

    def _answered(
        self,
        block: Sequence[AskedItem],
        settled: Mapping[int, StreamItem | Rejected],
        asked: JsonAnswers[StreamItem | Rejected],
        work: StepWork,
    ) -> Iterator[StreamItem | Rejected]:
        """Yield the results of one block, and count its cost and failures."""
        work.cost += asked.cost
        outcomes = {**settled, **asked.outcomes}
        for number, item in enumerate(block):
            if number in outcomes:
                yield outcomes[number]
                continue
            kind = asked.failures[number]
            work.failures[kind] = work.failures.get(kind, 0) + 1
            if (rejected := self.failed(item, kind)) is not None:
                yield rejected


class AskingQuestions(AskingStep[SourceQuestion], kind="build", needs="llm"):
    """A step that asks an LLM about each question."""

    reads = ("questions",)
    writes = "questions"

    def asked(self, streams: Streams) -> Iterator[SourceQuestion]:
        """Yield the questions."""
        return streams.questions()

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the text of the question and its answer."""
        return {"text": item.text, "answer": item.answer or "not known"}
