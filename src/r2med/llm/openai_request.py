"""What is sent to an OpenAI-compatible endpoint: settings where they are taken, and no others."""

from __future__ import annotations

from typing import Any

from r2med.llm.contracts import ChatRequest
from r2med.llm.llm_cards import LLMCard
from r2med.text.unicode import to_unicode


def path(request: ChatRequest) -> str:
    """Return where a request goes: chat completions, or with a raw prompt completions."""
    return "/chat/completions" if request.prompt is None else "/completions"


def parameters(card: LLMCard, request: ChatRequest) -> dict[str, Any]:
    """Return the body of a request."""
    sampling, prompt = request.sampling, request.prompt
    reasons = card.api_style == "reasoning" and prompt is None  # completions are older than that style
    # For a raw prompt OpenAI's and vLLM's own limit is 16 tokens, which nobody means.
    limit = sampling.max_tokens if prompt is None else sampling.max_tokens or card.max_tokens
    settings: dict[str, Any] = {
        "temperature": None if reasons else sampling.temperature,
        "top_p": None if reasons else sampling.top_p,
        # The same seed would draw the same answer for every sample.
        "seed": None if sampling.seed is None else sampling.seed + request.sample,
        "stop": list(sampling.stop) or None,
        "max_completion_tokens" if reasons else "max_tokens": limit,
        # No part of OpenAI's protocol, but vLLM, llama.cpp and others take them; OpenAI refuses them, so only when set.
        "top_k": sampling.top_k,
        "repetition_penalty": sampling.repetition_penalty,
    }
    if prompt is None and card.thinking is not None:
        settings["chat_template_kwargs"] = {"enable_thinking": card.thinking}
    messages = [{"role": message.role, "content": to_unicode(message.content)} for message in request.messages]
    return {
        "model": card.model,
        **({"messages": messages} if prompt is None else {"prompt": to_unicode(prompt)}),
        "stream": True,
        **{name: value for name, value in settings.items() if value is not None},
    }
