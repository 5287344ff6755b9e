"""LLMs in this process on this machine's GPUs, through vLLM: whole batches go in, its scheduler does the rest."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from r2med.encoders.weights import first_line, folder_revision
from r2med.errors import MissingExtraError, UserError
from r2med.llm.chat import ChatRequest, Failure, RawAnswer
from r2med.llm.llm_cards import LLMCard
from r2med.setup import Setup

CHUNK = 64
"""Requests handed over at once. vLLM returns when all are done: so many at most are lost when a run is killed."""


class VllmBackend:
    """Answers in chunks; chat templates and tokens are made here, so that a prompt's length is known before."""

    is_local = True

    def __init__(self, card: LLMCard, setup: Setup) -> None:
        self.card = card
        self.folder: Path | None = setup.path_of(card.name)
        self._vllm: Any = None
        self._engine: Any = None

    def describe(self) -> dict[str, Any]:
        """Return the weights by name, or by fingerprint where a folder was given, and the room they have."""
        settings: dict[str, Any] = {
            "backend": "vllm",
            "model": self.card.model,
            "context_length": self.card.context_length,
            "thinking": self.card.thinking,
        }
        if self.folder is not None:
            settings["fingerprint"] = folder_revision(self.folder)
        return settings

    def answer(self, requests: Iterable[ChatRequest], done: Callable[[int, RawAnswer | Failure], None]) -> None:
        """Answer all requests, chunk by chunk; those whose prompt does not fit are never handed over."""
        numbered = enumerate(requests)
        while chunk := list(islice(numbered, CHUNK)):
            self._load()
            fitting: list[tuple[int, list[int], ChatRequest]] = []
            for number, request in chunk:
                prompt = self._prompt(request)
                if isinstance(prompt, Failure):
                    done(number, prompt)
                else:
                    fitting.append((number, prompt, request))
            self._answer_chunk(fitting, done)

    def _answer_chunk(
        self, chunk: list[tuple[int, list[int], ChatRequest]], done: Callable[[int, RawAnswer | Failure], None]
    ) -> None:
        if not chunk:
            return
        started = time.perf_counter()
        prompts = [{"prompt_token_ids": prompt} for _, prompt, _ in chunk]
        sampling = [self._sampling(request) for _, _, request in chunk]
        try:
            outputs = self._engine.generate(prompts, sampling, use_tqdm=False)
        except Exception as error:  # whatever its workers raise: what came before is kept, these are asked again
            failure = Failure("server", f"vLLM: {type(error).__name__}: {first_line(error)}")
            for number, _, _ in chunk:
                done(number, failure)
            return
        seconds = time.perf_counter() - started  # all of a chunk run at once: each one's latency is the chunk's
        for (number, prompt, _), output in zip(chunk, outputs, strict=True):
            done(number, _read(output, len(prompt), seconds))

    def _prompt(self, request: ChatRequest) -> list[int] | Failure:
        tokenizer = self._engine.get_tokenizer()
        if request.prompt is not None:  # with the special tokens that vLLM's own `generate` adds to a text
            return self._fitting(tokenizer.encode(request.prompt, add_special_tokens=True))
        switch = {} if self.card.thinking is None else {"enable_thinking": self.card.thinking}
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        try:
            text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **switch)
        except Exception as error:  # templates raise what they like, for a system message they do not take
            return Failure("bad_request", f"the model's chat template refuses the request: {first_line(error)}")
        # The template has written the special tokens already.
        return self._fitting(tokenizer.encode(text, add_special_tokens=False))

    def _fitting(self, tokens: list[int]) -> list[int] | Failure:
        # One of them too long, and vLLM refuses the whole batch; one token at least must fit after it.
        if len(tokens) >= self.card.context_length:
            room = self.card.context_length
            return Failure("context_length", f"the prompt has {len(tokens)} tokens, the model takes {room} in all")
        return tokens

    def _sampling(self, request: ChatRequest) -> Any:
        wanted = request.sampling
        given = {
            "temperature": wanted.temperature,
            "top_p": wanted.top_p,
            "top_k": wanted.top_k,
            "repetition_penalty": wanted.repetition_penalty,
        }
        # What is left open is as the model's generation_config.json has it, as behind vLLM's server.
        own = self._engine.get_default_sampling_params()
        return self._vllm.SamplingParams(
            **{name: getattr(own, name) if value is None else value for name, value in given.items()},
            seed=None if wanted.seed is None else wanted.seed + request.sample,
            stop=list(wanted.stop) or None,
            max_tokens=wanted.max_tokens,  # None: up to the context's end (vLLM's default would be 16)
            **self._structured(request),
        )

    def _structured(self, request: ChatRequest) -> dict[str, Any]:
        if not request.schema:
            return {}
        # Since vLLM 0.11; what an older one writes is read as it comes.
        kind = getattr(importlib.import_module("vllm.sampling_params"), "StructuredOutputsParams", None)
        return {"structured_outputs": kind(json=request.schema)} if kind else {}

    def _load(self) -> None:
        if self._engine is not None:
            return
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")  # it would report to vLLM's makers
        try:
            self._vllm = importlib.import_module("vllm")
        except ImportError:
            raise MissingExtraError(f"model {self.card.name}", "vllm") from None
        try:
            self._engine = self._vllm.LLM(
                model=str(self.folder or self.card.model),
                tensor_parallel_size=_gpus(),
                max_model_len=self.card.context_length,
                # Requests bring their own; 0 is the engine's for those without, so that it does not depend on vLLM's.
                seed=0,
            )
        except Exception as error:  # no such repository, no GPU, not enough memory: vLLM has no common class for them
            raise UserError(
                f"model {self.card.name}: vLLM cannot load {self.folder or self.card.model}: "
                f"{type(error).__name__}: {first_line(error)}"
            ) from error


def _gpus() -> int:
    # Counted by torch, which vLLM needs anyway; counting does not start CUDA, which its workers could not inherit.
    torch = importlib.import_module("torch")
    return max(1, int(torch.cuda.device_count()))


def _read(output: Any, prompt_tokens: int, seconds: float) -> RawAnswer | Failure:
    first = output.outputs[0]
    if first.finish_reason not in ("stop", "length"):
        return Failure("server", f"vLLM gave the request up ({first.finish_reason})", seconds=seconds)
    return RawAnswer(
        content=first.text,
        finish_reason=first.finish_reason,
        prompt_tokens=len(output.prompt_token_ids or ()) or prompt_tokens,
        completion_tokens=len(first.token_ids),
        seconds=seconds,
    )
