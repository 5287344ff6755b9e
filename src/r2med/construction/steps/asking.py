"""Steps that ask an LLM about each item, and read a JSON object in its answer. What cannot be read is asked anew, then
left out and counted; nothing is guessed."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field

from r2med.ask.answers import LLMAnswer
from r2med.ask.json_answers import JsonAnswers, ask_json, json_question
from r2med.construction.items import Item, Question, Rejected
from r2med.construction.step import Step, Streams, Work
from r2med.core.errors import UserError
from r2med.core.stages import argument
from r2med.engine.reporting import part_of
from r2med.llm.costs import estimate, is_priced
from r2med.llm.journaled import JournaledChat, open_chat
from r2med.llm.llm_cards import LLMCard, resolve_llm
from r2med.prompts.fitting import Fitter
from r2med.prompts.templates import Template, read_template
from r2med.runtime.runtime import Runtime
from r2med.store import digest
from r2med.text.identifiers import identifier_warning

log = logging.getLogger("r2med")

AT_ONCE = 512
"""Items whose requests are made and answered together: bounds the memory, keeps every connection busy."""

SYSTEM = "You are a careful medical editor. You answer with one JSON object and nothing else."

Asked = TypeVar("Asked")


class Asking(Step, Generic[Asked], kind="build", needs="llm"):
    """A step that asks an LLM about each item."""

    template: ClassVar[str]
    """The name of its prompt: a file of construction/prompts, or of the folder `prompts`."""
    answer: ClassVar[type[LLMAnswer]]
    """The model of an answer."""

    llm: str = argument("the LLM that is asked", default="")
    prompts: str = Field("", description="a folder with templates of your own, beside the plan")
    tries: int = Field(3, ge=1, le=10, description="how often an item is asked about before it counts as failed")

    def asked(self, streams: Streams) -> Iterator[Asked]:
        """Yield what is asked about."""
        raise NotImplementedError

    def fields(self, item: Asked) -> Mapping[str, str]:
        """Return what fills the fields of the template; `text` is what is cut where it does not fit."""
        raise NotImplementedError

    def answer_model(self, item: Asked) -> type[LLMAnswer]:
        """Return the model of an answer about this item."""
        return self.answer

    def read(self, item: Asked, answer: Any) -> Item | Rejected:
        """Return the item as it goes on, or left out. Raises ValueError if the answer is about something else."""
        raise NotImplementedError

    def settled(self, item: Asked) -> Item | Rejected | None:
        """Return what becomes of an item about which nothing needs to be asked; None for all others."""
        return None

    def failed(self, item: Asked, kind: str) -> Rejected | None:
        """Return the item as left out since no answer could be read; None if there is nothing to keep."""
        return Rejected.of(item, "no usable answer", kind) if isinstance(item, Item) else None

    def unread(self, item: Asked) -> Item | None:
        """Return the item as it goes on in a rehearsal, where nothing is asked."""
        return item if isinstance(item, Item) else None

    def describe(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return all its output depends on besides what it reads."""
        chat = self.chat(runtime)
        prompt = digest(self.prompt(streams).text)
        return {**super().describe(streams, runtime), "prompt": prompt, "llm": chat.describe()}

    def prompt(self, streams: Streams) -> Template:
        """Return the template: the user's, if there is one."""
        name = f"{self.template}.txt"
        own = streams.path(self.prompts) / name if self.prompts else None
        file = own if own is not None and own.is_file() else files("r2med.construction") / "prompts" / name
        return Template(str(file), read_template(file))

    def card(self, runtime: Runtime) -> LLMCard:
        """Return the card of the LLM. Raises UserError if there is none."""
        if not (self.llm or runtime.setup.llm):
            raise UserError(f'{self.name} asks an LLM: name one with --llm NAME, or with llm = "NAME" in the plan')
        return resolve_llm(self.llm or runtime.setup.llm, runtime.setup)

    def chat(self, runtime: Runtime) -> JournaledChat:
        """Return the LLM; nothing is asked."""
        return open_chat(self.card(runtime), runtime)

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Ask about each item; items keep their order."""
        self.announce(streams, work)
        total = 0 if work.rehearsal else sum(1 for _ in self.asked(streams))
        yield from self.about(self.asked(streams), streams, work, total)

    def announce(self, streams: Streams, work: Work) -> None:
        """Keep the prompt for the datasheet, and warn of personal data that is about to be sent to others."""
        chat = self.chat(work.runtime)
        work.facts["prompt"] = self.prompt(streams).text
        if not (chat.is_local or work.rehearsal):
            texts = (" ".join(self.fields(item).values()) for item in self.asked(streams) if not self.settled(item))
            if warning := identifier_warning(f"{self.name} sends to {chat.name}", texts):
                log.warning("%s; Ctrl-C stops, --offline refuses", warning)

    def about(
        self, items: Iterator[Asked], streams: Streams, work: Work, total: int, begun: int = 0
    ) -> Iterator[Item | Rejected]:
        """Ask about these items; each that is asked about or settled gives one, unless it failed without a trace.

        `total` is how many items the step asks about in all, `begun` how many of them came before these.
        """
        chat, card = self.chat(work.runtime), self.card(work.runtime)
        fitter, template = Fitter(card, SYSTEM), self.prompt(streams)
        while block := list(itertools.islice(items, AT_ONCE)):
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
                with part_of(begun, total):
                    asked = ask_json(questions, lambda n, answer: self.read(block[n], answer), chat, card, self.tries)
                yield from self._answered(block, settled, asked, work)
            begun += len(block)

    def _answered(
        self,
        block: Sequence[Asked],
        settled: Mapping[int, Item | Rejected],
        asked: JsonAnswers[Item | Rejected],
        work: Work,
    ) -> Iterator[Item | Rejected]:
        """Yield a block's items."""
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


class AskingQuestions(Asking[Question], kind="build", needs="llm"):
    """A step that asks an LLM about each question."""

    reads = ("questions",)
    writes = "questions"

    def asked(self, streams: Streams) -> Iterator[Question]:
        """Yield the questions."""
        return streams.questions()

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return the question and its answer."""
        return {"text": item.text, "answer": item.answer or "not known"}
