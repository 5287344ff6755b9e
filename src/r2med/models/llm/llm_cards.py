"""LLM cards: one TOML file for each LLM, and the lookup of a card by name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.names import Catalogue
from r2med.foundation.net.offline import is_loopback, is_offline
from r2med.foundation.runtime.setup import Setup
from r2med.models.llm.chat import Ability, Sampling

GGUF = ".gguf"
SCRIPT = ".jsonl"

AnswerStyle = Literal["plain", "think", "final-response", "answer-tag"]
Cleaning = Literal["strict", "published"]


class Price(BaseModel):
    """Dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Price of sent tokens."""
    completion: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Price of written tokens, including reasoning."""


class LLMCard(BaseModel):
    """Everything needed to ask an LLM as the benchmark did."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str
    """Name of the LLM as a user types it. Default: the name of the file."""
    variant: str = ""
    """The part after the colon in NAME:VARIANT."""
    model: str
    """The provider's name of the model."""
    backend: Literal["openai", "local", "scripted"] = "openai"
    """Where it runs: behind an OpenAI-compatible endpoint, in this process (llama.cpp), or read from a script."""
    base_url: str = ""
    """Address of the endpoint. Empty: OPENAI_BASE_URL, or else OpenAI's own address."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that contains the key."""
    package: str = ""
    """Installed Python package that contains the weights of a local model."""
    answer: AnswerStyle = "plain"
    """Text before the answer: nothing; reasoning up to </think>; reasoning up to "Final Response"; or <answer> tags."""
    cleaning: Cleaning = "strict"
    """Which marker the answer follows.

    strict: the last marker, and a text without one has no answer. published: the first marker, and a text without one
    counts in full, including its reasoning, as in the published benchmark.
    """
    api_style: Literal["chat", "reasoning"] = "chat"
    """reasoning: the API accepts no temperature and no top_p, and its limit is called max_completion_tokens."""
    thinking: bool | None = None
    """Switch of models that have one (Qwen3). It is sent as chat_template_kwargs.enable_thinking."""
    lacks: tuple[Ability, ...] = ()
    """What the API does not offer: completions (to continue a raw text), logprobs (log-probabilities of tokens), or a
    seed, which is then not sent.
    """
    json_schema: bool = True
    """True if the API accepts a JSON schema for the answer."""
    temperature: float | None = 0.7
    """Randomness of sampling. If None, it is not sent. A card writes None as "model"."""
    top_p: float | None = None
    """Sample from the most likely tokens that have this total probability. None: not sent."""
    top_k: int | None = None
    """Sample from this number of most likely tokens. None: not sent."""
    repetition_penalty: float | None = None
    """Penalty for tokens that were written before. None: not sent."""
    agent_repetition_penalty: float | None = None
    """Penalty that search agents use instead."""
    agent_max_tokens: int | None = None
    """Maximum tokens of a turn for agents that reason at length, if their authors used another limit for this LLM."""
    chat_template: str = "chatml"
    """Form of a conversation that is sent as raw text: one of `r2med.systems.agents.agent_loop`."""
    seed: int | None = 42
    """Seed of the sampling. None: not sent."""
    max_tokens: int = Field(10240, ge=1, le=10_000_000)
    """Maximum number of tokens of an answer, including reasoning."""
    context_length: int = Field(32768, ge=1, le=100_000_000)
    """Maximum number of tokens of prompt and answer together."""
    price: Price = Price()
    """Price of the tokens. Without it the price is unknown."""
    family: tuple[str, ...] = ()
    """Models that it is made of, if its name does not show this (see `families`)."""
    parameters: str = ""
    """Size of the model, such as 8B."""
    licence: str = ""
    """Licence of the weights."""
    notes: tuple[str, ...] = ()
    """Further notes for users, one sentence each."""

    @field_validator("temperature", mode="before")
    @classmethod
    def _temperature_of_the_model(cls, temperature: object) -> object:
        return None if temperature == "model" else temperature  # TOML has no word for None.

    @property
    def spec(self) -> str:
        """Name of the LLM as a user types it."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    @property
    def keeps_schema(self) -> bool:
        """True if requests contain the schema of the answer. A schema would forbid reasoning before an answer."""
        return self.json_schema and self.answer == "plain" and self.backend != "scripted"


def with_named_llm(content: Any) -> Any:
    """Return the content of another card in which the table `llm`, its own model, has the name of that card."""
    if isinstance(content, Mapping) and isinstance(llm := content.get("llm"), Mapping):
        return {**content, "llm": {"name": content.get("name", ""), **llm}}
    return content


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
"""Families of models, and the patterns that recognise their names. A distilled model belongs to two families."""


def families(card: LLMCard) -> tuple[str, ...]:
    """Return the families of an LLM. A judge should not belong to the family of the LLM that it judges."""
    name = card.model.lower()
    named = tuple(family for family, pattern in _FAMILIES.items() if re.search(pattern, name))
    return card.family or named or (card.name,)


def find_llm(name: str, setup: Setup) -> LLMCard | None:
    """Return the card of an LLM that can be asked: its own card, or one made for a given file or endpoint."""
    if name in LLMS:
        return with_own_file(LLMS[name], setup)
    if not name.strip() or not name.isprintable():
        raise UserError(f"{name!r} is not a name of a model")
    path = setup.path_of(name)
    if path is not None and _has_gguf(path):
        note = f"Made for the GGUF file {path.name}. It has small limits; your own card can raise them."
        return LLMCard(name=name, model=name, backend="local", context_length=4096, max_tokens=1024, notes=(note,))
    if path is not None and path.suffix == SCRIPT:
        note = f"Scripted answers from {path.name}. No model is asked."
        return LLMCard(name=name, model=name, backend="scripted", max_tokens=2048, notes=(note,))
    if setup.base_url or os.environ.get("OPENAI_BASE_URL", "").strip():
        note = "Made for the address of an endpoint, without its own card."
        return LLMCard(name=name, model=name, base_url=setup.base_url, notes=(note,))
    return None


def with_own_file(card: LLMCard, setup: Setup) -> LLMCard:
    """Return the card with the backend that reads the file which the user named for it, if there is one."""
    path = setup.path_of(card.name)
    if path is None or setup.base_url:
        return card
    backend = "local" if _has_gguf(path) else "scripted" if path.suffix == SCRIPT else card.backend
    return card.model_copy(update={"backend": backend})


def _has_gguf(path: Path) -> bool:
    return path.suffix == GGUF or any(path.glob(f"*{GGUF}"))


def resolve_llm(name: str, setup: Setup) -> LLMCard:
    """Return the card of an LLM that can be asked. Raises UserError if there is none."""
    card = find_llm(name, setup)
    if card is None:
        others = (
            "r2med list llms shows all; others run with base_url (--base-url URL), or from a file with model_paths "
            "(--model-path NAME=FILE.gguf)"
        )
        raise unknown("LLM", name, LLMS, others)
    return card


def sampling_of(card: LLMCard) -> Sampling:
    """Return the sampling settings of a card."""
    reasons = card.api_style == "reasoning"
    return Sampling(
        temperature=None if reasons else card.temperature,
        top_p=None if reasons else card.top_p,
        top_k=card.top_k,
        repetition_penalty=card.repetition_penalty,
        seed=None if "seed" in card.lacks else card.seed,
        max_tokens=card.max_tokens,
    )


def given_address(card: LLMCard, setup: Setup) -> str:
    """Return the address of a user's own server for a card; empty if the address is that of the card, or OpenAI's."""
    is_openai = not card.base_url and card.api_key_env == "OPENAI_API_KEY"
    return setup.base_url or (os.environ.get("OPENAI_BASE_URL", "").strip() if is_openai else "")


def missing_for(card: LLMCard, setup: Setup) -> str:
    """Return the problem that prevents asking the LLM of a card: no server has its weights, or its key is not set."""
    if (setup.llm_backend or ("openai" if setup.base_url else card.backend)) != "openai":
        return ""
    given = given_address(card, setup)
    address = given or card.base_url
    is_local = bool(address) and is_loopback(urlsplit(address).hostname)
    if is_offline() and not is_local:
        return f"offline, and {card.name} is not on this machine"
    if "/" in card.model and not address:
        return f"{card.model} needs a server: start `vllm serve {card.model}`, and give base_url (--base-url URL)"
    if given or is_local or not card.api_key_env or os.environ.get(card.api_key_env, "").strip():
        return ""
    return f"{card.api_key_env} is not set; export it before the run"
