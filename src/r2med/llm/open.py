"""Opening an LLM by its card: the backend that runs it, behind the journal."""

from __future__ import annotations

from importlib import import_module

from r2med.errors import UserError, nearest
from r2med.llm.contracts import Backend, Sampling
from r2med.llm.llm_cards import LLMCard, llm_card, llms
from r2med.llm.model import JournaledChat
from r2med.net.retry import Policy
from r2med.setup import Setup
from r2med.store import Store

# module:Class, called as Class(card, options), imported when it is first wanted.
BACKENDS = {
    "openai": "r2med.llm.openai_backend:OpenAIBackend",
    "vllm": "r2med.llm.vllm:VllmBackend",
    "local": "r2med.llm.local:LocalBackend",
}


def open_chat(card: LLMCard, options: Setup, store: Store, *, policy: Policy | None = None) -> JournaledChat:
    """Return the LLM of a card; `policy` is for tests. Nothing is asked, and no key needed, until a question comes
    that the journal has no answer to.
    """
    return JournaledChat(card, _backend(card, options, policy), store)


def card_for_endpoint(name: str, base_url: str) -> LLMCard:
    """Return a card for any other model of an OpenAI-compatible endpoint, under the name the endpoint has for it."""
    if not name.strip() or not name.isprintable():
        raise UserError(f"{name!r} is no name of a model")
    return LLMCard(
        name=name, model=name, base_url=base_url, notes=("Asked for by --llm and --base-url: no card of its own.",)
    )


def resolve_llm(name: str, setup: Setup) -> LLMCard:
    """Return the card of an LLM; one without a card is asked at the setup's endpoint. Raises UserError without both."""
    return llm_card(name) if name in llms() or not setup.base_url else card_for_endpoint(name, setup.base_url)


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


def _backend(card: LLMCard, options: Setup, policy: Policy | None) -> Backend:
    # An address means an endpoint, whatever the card prefers.
    name = options.llm_backend or ("openai" if options.base_url else card.backend)
    if name not in BACKENDS:
        raise UserError(f"no LLM backend {name!r}{nearest(name, BACKENDS)}: {', '.join(BACKENDS)}")
    if name != "openai" and options.base_url:
        raise UserError(f"--base-url is for the backend openai: {name} runs {card.name} in this process")
    module, _, kind = BACKENDS[name].partition(":")
    extra = {"policy": policy} if policy is not None and name == "openai" else {}
    backend: Backend = getattr(import_module(module), kind)(card, options, **extra)
    return backend
