"""LLM cards: one TOML file each, as a provider names and runs them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from r2med import plugins
from r2med.errors import UserError, checked_name, nearest
from r2med.toml_card import read_toml, validated


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Price(_Part):
    """Dollars per million tokens."""

    prompt: float = 0.0
    completion: float = 0.0


class LLMCard(_Part):
    """All that is needed to ask an LLM as the benchmark did."""

    name: str
    model: str
    """The provider's name for it."""
    backend: Literal["openai", "vllm", "local"] = "openai"
    base_url: str = ""
    """Empty: the SDK's own, or OPENAI_BASE_URL."""
    api_key_env: str = "OPENAI_API_KEY"
    package: str = ""
    """An installed Python package that carries the weights of a local model."""
    answer: Literal["plain", "think", "final-response", "answer-tag"] = "plain"
    """What comes before the answer: nothing; reasoning up to </think>; up to "Final Response"; <answer> tags."""
    api_style: Literal["chat", "reasoning"] = "chat"
    """reasoning: the API takes no temperature or top_p, and calls the limit max_completion_tokens."""
    thinking: bool | None = None
    """The switch of models that have one (Qwen3): sent as chat_template_kwargs.enable_thinking."""
    temperature: float | None = 0.7
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    agent_repetition_penalty: float | None = None
    """What search agents draw with instead."""
    agent_max_tokens: int | None = None
    """Tokens of a turn of agents that reason at length, where their authors gave this LLM another limit."""
    chat_template: str = "chatml"
    """The form of a conversation where a raw text is sent: one of `r2med.agents.dialogue`."""
    seed: int | None = 42
    max_tokens: int = 10240
    context_length: int = 32768
    price: Price = Price()
    parameters: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()


@cache
def llms() -> Mapping[str, LLMCard]:
    """Return every card by name."""
    files = plugins.files("llms", ".toml")
    return {name: _read(file, checked_name(name, "model")) for name, file in sorted(files.items())}


def _read(file: Traversable, name: str) -> LLMCard:
    return validated(LLMCard, {"name": name, **read_toml(file)}, file)


def llm_card(name: str) -> LLMCard:
    """Return the card of a name; one that does not exist is one line with the nearest."""
    if name in llms():
        return llms()[name]
    raise UserError(
        f"no LLM {name!r}{nearest(name, llms())}: r2med llms list shows all, "
        "any other is run with --llm NAME --base-url URL"
    )
