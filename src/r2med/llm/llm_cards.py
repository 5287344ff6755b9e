"""LLM cards: one TOML file for each LLM, as a provider names and runs it; and which card a name means."""

from __future__ import annotations

import os
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from r2med.core.cards import Catalogue
from r2med.core.errors import UserError, unknown
from r2med.llm.chat import Sampling
from r2med.runtime.setup import Setup

GGUF = ".gguf"
SCRIPT = ".jsonl"

NO_VLLM = (
    "r2med no longer runs vLLM in its own process: start `vllm serve MODEL` and give its address, "
    "--base-url http://localhost:8000/v1"
)
"""Said to those who ask for the backend of earlier versions."""

AnswerStyle = Literal["plain", "think", "final-response", "answer-tag"]
Cleaning = Literal["strict", "published"]


class Price(BaseModel):
    """Dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Of what is sent."""
    completion: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Of what is written, reasoning included."""


class LLMCard(BaseModel):
    """All that is needed to ask an LLM as the benchmark did."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str
    """What one types; by default the name of the file."""
    variant: str = ""
    """What stands after the colon: NAME:VARIANT."""
    model: str
    """The provider's name for it."""
    backend: Literal["openai", "local", "scripted"] = "openai"
    """Where it runs: behind an OpenAI-compatible endpoint, in this process (llama.cpp), or read from a script."""
    base_url: str = ""
    """Empty: OPENAI_BASE_URL, else OpenAI's own."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key."""
    package: str = ""
    """An installed Python package that carries the weights of a local model."""
    answer: AnswerStyle = "plain"
    """What comes before the answer: nothing; reasoning up to </think>; up to "Final Response"; <answer> tags."""
    cleaning: Cleaning = "strict"
    """Which marker the answer follows: strict: the last, and without one there is no answer; published: the first, and
    without one the whole text, chain of thought and all, as the published benchmark has it."""
    api_style: Literal["chat", "reasoning"] = "chat"
    """reasoning: the API takes no temperature or top_p, and calls the limit max_completion_tokens."""
    thinking: bool | None = None
    """The switch of models that have one (Qwen3): sent as chat_template_kwargs.enable_thinking."""
    json_schema: bool = True
    """Whether it takes the JSON schema that an answer has to keep."""
    temperature: float | None = 0.7
    """How freely tokens are drawn; None: not sent."""
    top_p: float | None = None
    """Draw from the likeliest tokens that make up this share; None: not sent."""
    top_k: int | None = None
    """Draw from so many of the likeliest tokens; None: not sent."""
    repetition_penalty: float | None = None
    """What makes tokens that were written before less likely; None: not sent."""
    agent_repetition_penalty: float | None = None
    """What search agents draw with instead."""
    agent_max_tokens: int | None = None
    """Tokens of a turn of agents that reason at length, where their authors gave this LLM another limit."""
    chat_template: str = "chatml"
    """The form of a conversation where a raw text is sent: one of `r2med.agents.dialogue`."""
    seed: int | None = 42
    """Of the draws; None: not sent."""
    max_tokens: int = Field(10240, ge=1, le=10_000_000)
    """Tokens of an answer at most, reasoning included."""
    context_length: int = Field(32768, ge=1, le=100_000_000)
    """Tokens of prompt and answer together."""
    price: Price = Price()
    """What it costs; without it the price is not known."""
    family: tuple[str, ...] = ()
    """The models that it is made of, where its name says otherwise or nothing (see `families`)."""
    parameters: str = ""
    """Its size, such as 8B."""
    licence: str = ""
    """Under which the weights may be used."""
    notes: tuple[str, ...] = ()
    """What else one should know, a sentence each."""

    @field_validator("backend", mode="before")
    @classmethod
    def _known_backend(cls, backend: object) -> object:
        if backend == "vllm":
            raise ValueError(NO_VLLM)
        return backend

    @property
    def spec(self) -> str:
        """What one types to get it."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    @property
    def keeps_schema(self) -> bool:
        """Whether questions bring the schema of their answer. It would forbid the reasoning before an answer."""
        return self.json_schema and self.answer == "plain" and self.backend != "scripted"


LLMS = Catalogue("llms", LLMCard, "LLM")

_FAMILIES = {
    "gpt": r"gpt|\bo[134]\b",
    "claude": "claude",
    "gemini": "gemini",
    "gemma": "gemma",
    "llama": "llama",
    "qwen": r"qwen|\bqwq",
    "deepseek": r"deepseek|\br1\b",
    "mistral": "mi[sx]tral",
    "phi": r"\bphi\b",
    "smollm": "smollm",
}
"""Families of models, and how their names are told: a distilled model is of two."""


def families(card: LLMCard) -> tuple[str, ...]:
    """Return the families of an LLM: who judges should not be of the family of who is judged."""
    name = card.model.lower()
    named = tuple(family for family, pattern in _FAMILIES.items() if re.search(pattern, name))
    return card.family or named or (card.name,)


def find_llm(name: str, setup: Setup) -> LLMCard | None:
    """Return the card of an LLM that can be asked: its own, or one for a file or an endpoint that was named."""
    if name in LLMS:
        return LLMS[name]
    if not name.strip() or not name.isprintable():
        raise UserError(f"{name!r} is not a name of a model")
    path = setup.path_of(name)
    if path is not None and (path.suffix == GGUF or any(path.glob(f"*{GGUF}"))):
        note = f"Asked for by a GGUF file: {path.name}. Small limits, which a card of its own may raise."
        return LLMCard(name=name, model=name, backend="local", context_length=4096, max_tokens=1024, notes=(note,))
    if path is not None and path.suffix == SCRIPT:
        note = f"Scripted answers, written beforehand: {path.name}. No model is asked."
        return LLMCard(name=name, model=name, backend="scripted", max_tokens=2048, notes=(note,))
    if setup.base_url or os.environ.get("OPENAI_BASE_URL", "").strip():
        note = "Asked for by the address of an endpoint: no card of its own."
        return LLMCard(name=name, model=name, base_url=setup.base_url, notes=(note,))
    return None


def resolve_llm(name: str, setup: Setup) -> LLMCard:
    """Return the card of an LLM that can be asked. Raises UserError if there is none."""
    card = find_llm(name, setup)
    if card is None:
        others = "any other runs with --base-url URL, or from a file with --model-path NAME=FILE.gguf"
        raise unknown("LLM", name, LLMS, f"r2med list llms shows all; {others}")
    return card


def sampling_of(card: LLMCard) -> Sampling:
    """Return how a card says that tokens are drawn."""
    reasons = card.api_style == "reasoning"
    return Sampling(
        temperature=None if reasons else card.temperature,
        top_p=None if reasons else card.top_p,
        top_k=card.top_k,
        repetition_penalty=card.repetition_penalty,
        seed=card.seed,
        max_tokens=card.max_tokens,
    )


def missing_key(llm: str, setup: Setup) -> str:
    """Return what would stop an LLM from being asked, in one line: an unknown name, or a key that is not set."""
    try:
        card = find_llm(llm, setup)
    except UserError as error:
        return str(error)
    if card is None or card.backend != "openai" or setup.base_url or os.environ.get(card.api_key_env):
        return ""
    local = card.base_url.startswith(("http://127.", "http://localhost"))
    return "" if local or not card.api_key_env else f"{card.api_key_env} is not set: export it before the run"
