"""The prompts of an expansion: the templates of a method, and the filled prompts before they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources.abc import Traversable

from r2med.data import Dataset
from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.cost import Cost
from r2med.models.llm.chat import ChatRequest, Failure, Sampling
from r2med.models.prompts.fitting import Fitted
from r2med.models.prompts.templates import Template, open_templates
from r2med.systems.expand.method_cards import REFINE_FIELDS, MethodCard


@dataclass(frozen=True)
class Prompts:
    """The templates of one method for one kind of task."""

    system: str
    ask: Template
    examples: str
    refine: Template | None
    digest: str


def open_prompts(method: MethodCard, kind: str, folder: Traversable | None = None, *, refine: bool = False) -> Prompts:
    """Return the templates and sampling for LLM calls. Files of a set have priority over built-in ones."""
    templates = open_templates(folder, [kind])
    system = templates.template("system").text if method.system else ""
    ask = templates.template(method.prompt, kind, method.fields)
    examples = templates.read(templates.name_of("examples", kind))[1] if ask.names("examples") else ""
    refining = templates.template(method.refine, kind, REFINE_FIELDS) if refine else None
    return Prompts(system, ask, examples, refining, templates.digest)


def task_of(dataset: Dataset) -> str:
    """Return the task of a dataset in one sentence, as instruction-tuned models are told it."""
    instruction = dataset.card.instruction if dataset.card else None
    return (instruction or ANY_DATASET).fill("Given a {kind}, retrieve {what}.")


@dataclass(frozen=True)
class Prepared:
    """Prompts before they are sent, sample by sample, each with the queries in order."""

    prompts: tuple[Fitted | Failure, ...]
    """The prompt of each query, or a failure if even the bare query does not fit."""
    samples: tuple[int, ...]
    """The sample that each prompt belongs to."""
    sampling: Sampling
    cost: Cost
    """The cost of searching for the passages in the prompts."""

    @property
    def requests(self) -> tuple[ChatRequest, ...]:
        """The prompts that fit."""
        fitting = [(number, prompt) for number, prompt in enumerate(self.prompts) if isinstance(prompt, Fitted)]
        return tuple(self.request(number, prompt) for number, prompt in fitting)

    def request(self, number: int, prompt: Fitted) -> ChatRequest:
        """Return the request of the prompt at a position."""
        return ChatRequest(prompt.messages, self.sampling, self.samples[number])

    @property
    def cut(self) -> int:
        """Number of prompts with parts left out."""
        return sum(isinstance(prompt, Fitted) and prompt.cut for prompt in self.prompts)
