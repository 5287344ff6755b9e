"""LLM cards: one TOML file each, as a provider names and runs them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from r2med import plugins
from r2med.errors import UserError, checked_name, nearest


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
    seed: int | None = 42
    max_tokens: int = 10240
    context_length: int = 32768
    price: Price = Price()
    parameters: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()


def read_card(file: Traversable | Path, name: str) -> LLMCard:
    """Return one card."""
    try:
        content: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        return LLMCard(name=name, **content)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not a TOML card: {error}") from None


@cache
def llms() -> Mapping[str, LLMCard]:
    """Return every card by name."""
    files = plugins.files("llms", ".toml")
    return {name: read_card(file, checked_name(name, "model")) for name, file in sorted(files.items())}


def llm_card(name: str) -> LLMCard:
    """Return the card of a name; one that does not exist is one line with the nearest."""
    if name in llms():
        return llms()[name]
    raise UserError(
        f"no LLM {name!r}{nearest(name, llms())}: r2med llms list shows all, "
        "any other is run with --llm NAME --base-url URL"
    )
