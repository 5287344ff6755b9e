"""Steps that ask an LLM about each item and read a JSON object from its answer.

An unreadable answer is asked for again. After the last try the item is left out and counted. Nothing is guessed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field

from r2med.construction.items import Rejected, SourceQuestion, StreamItem
from r2med.construction.step import Step, StepWork, Streams
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs
from r2med.foundation.engine.reporting import part_of
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import argument
from r2med.foundation.store import digest
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.ask import Ask, AskedItem
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, resolve_llm
from r2med.models.prompts.templates import Template, read_template

ITEMS_PER_BLOCK = 512
"""Items that are asked about together. A block bounds the memory and keeps every connection busy."""

ItemType = TypeVar("ItemType")


class AskingStep(Step, Generic[ItemType], kind="build", takes="llm"):
    """A step that asks an LLM about each item."""

    template: ClassVar[str]
    """Name of the prompt: a file in construction/prompts, or in the folder `prompts` of the plan."""
    prompt_text: ClassVar[str] = ""
    """The prompt of a step of a plugin, which has no file in construction/prompts."""
    answer: ClassVar[type[LLMAnswer]]
    """Model of the LLM's answer."""

    llm: str = argument("the LLM to ask", default="")
    prompts: str = Field("", description="Folder with your own prompt templates, beside the plan.")
    tries: int = Field(3, ge=1, le=10, description="Number of requests for an item before it counts as failed.")

    def asked(self, streams: Streams) -> Iterator[ItemType]:
        """Yield the items to ask about."""
        raise NotImplementedError(f"{type(self).__name__} has no asked()")

    def fields(self, item: ItemType) -> Mapping[str, str]:
        """Return the values of the template's fields. If the prompt is too long, `text` is cut."""
        raise NotImplementedError(f"{type(self).__name__} has no asked()")

    def answer_model(self, item: ItemType) -> type[LLMAnswer]:
        """Return the model of the answer for this item."""
        return self.answer

    def read(self, item: ItemType, answer: Any) -> StreamItem | Rejected:
        """Return the updated or rejected item. Raises ValueError if the answer does not fit the item."""
        raise NotImplementedError(f"{type(self).__name__} has no asked()")

    def settled(self, item: ItemType) -> StreamItem | Rejected | None:
        """Return the result for an item that needs no request; None for all other items."""
        return None

    def failed(self, item: ItemType, kind: str) -> Rejected | None:
        """Return the item as rejected because no answer could be read; None if nothing should be kept."""
        return Rejected.of(item, "no usable answer", kind) if isinstance(item, StreamItem) else None

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the output depends on, except the input streams."""
        chat = self.chat(runtime)
        prompt = digest(self.prompt(streams).text)
        return {**super().key(streams, runtime), "prompt": prompt, "llm": chat.key()}

    def prompt(self, streams: Streams) -> Template:
        """Return the prompt template: the user's if there is one, otherwise ours."""
        name = f"{self.template}.txt"
        own = streams.path(self.prompts) / name if self.prompts else None
        if own is not None and own.is_file():
            return Template(str(own), read_template(own))
        if self.prompt_text:
            return Template(self.name, self.prompt_text)
        file = files("r2med.construction") / "prompts" / name
        return Template(str(file), read_template(file))

    def card(self, runtime: Runtime) -> LLMCard:
        """Return the card of the LLM. Raises UserError if no LLM is named or known."""
        if not (self.llm or runtime.setup.llm):
            raise UserError(
                f'{self.name} asks an LLM: name one with llm (--llm NAME), or with llm = "NAME" in the plan',
            )
        return resolve_llm(self.llm or runtime.setup.llm, runtime.setup)

    def chat(self, runtime: Runtime) -> JournaledChat:
        """Open the LLM. No request is sent."""
        return open_chat(self.card(runtime), runtime)

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Ask about each item. Items keep their order."""
        self.announce(streams, work)
        total = sum(1 for _ in self.asked(streams))
        yield from self.about(self.asked(streams), streams, work, total)

    def calls(self, streams: Streams, runtime: Runtime) -> Needs | None:
        """Return what asking about these items would cost; None if they are candidates that are not collected yet."""
        if "candidates" in self.reads and "candidates" not in streams.files:
            return None
        waiting = [self.asked_item(item) for item in self.asked(streams) if not self.settled(item)]
        return self.question(streams, runtime).needs(waiting, runtime.setup)

    def announce(self, streams: Streams, work: StepWork) -> None:
        """Store the prompt for the datasheet."""
        work.facts["prompt"] = self.question(streams, work.runtime).template.text

    def question(self, streams: Streams, runtime: Runtime) -> Ask:
        """Return the question that this step asks about each item."""
        return Ask(self.chat(runtime), self.prompt(streams), self.answer, tries=self.tries)

    def asked_item(self, item: ItemType) -> AskedItem:
        """Return an item as the LLM is asked about it."""
        return AskedItem(self.fields(item), self.answer_model(item))

    def about(
        self, items: Iterator[ItemType], streams: Streams, work: StepWork, total: int, begun: int = 0
    ) -> Iterator[StreamItem | Rejected]:
        """Ask about these items and yield one result for each, except for failed items that `failed` drops.

        `total` is the number of items of the whole step. `begun` is how many of them came before these.
        """
        ask = self.question(streams, work.runtime)
        while block := list(itertools.islice(items, ITEMS_PER_BLOCK)):
            settled = [self.settled(item) for item in block]
            waiting = [item for item, known in zip(block, settled, strict=True) if known is None]
            with part_of(begun, total):
                found = iter(self._answered(ask, waiting, work))
            yield from filter(None, (known or next(found) for known in settled))
            begun += len(block)

    def _answered(self, ask: Ask, items: Sequence[ItemType], work: StepWork) -> list[StreamItem | Rejected | None]:
        """Ask, and return the result for each item. None: it failed, and nothing is kept of it."""
        asked = [self.asked_item(item) for item in items]
        answers = ask.ask(asked, lambda number, answer: self.read(items[number], answer))
        work.cost += answers.cost
        work.failures = dict(Counter(work.failures) + Counter(answers.failures.values()))
        failed = {number: self.failed(items[number], kind) for number, kind in answers.failures.items()}
        return [answers.outcomes.get(number) or failed[number] for number in range(len(items))]


class AskingQuestions(AskingStep[SourceQuestion], kind="build", takes="llm"):
    """A step that asks an LLM about each question."""

    reads = ("questions",)
    writes = "questions"

    def asked(self, streams: Streams) -> Iterator[SourceQuestion]:
        """Yield the questions."""
        return streams.questions()

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the text of the question and its answer."""
        return {"text": item.text, "answer": item.answer or "not known"}
