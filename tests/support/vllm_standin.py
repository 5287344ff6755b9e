"""vLLM's documented offline interface without its engine: a call that vLLM would refuse fails here as well."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

ENGINE_ARGUMENTS = {"max_model_len", "max_num_seqs", "enable_prefix_caching", "disable_log_stats", "load_format"}
"""What LLM(**kwargs) passes on to EngineArgs, as far as anyone here might use it."""


@dataclass
class StructuredOutputsParams:
    json: str | dict[str, Any] | None = None


@dataclass
class SamplingParams:
    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    structured_outputs: StructuredOutputsParams | None = None

    def __post_init__(self) -> None:
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.repetition_penalty <= 0 or self.top_k < -1:
            raise ValueError(f"out of range: {self}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}.")


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: Sequence[int]
    cumulative_logprob: float | None
    logprobs: Any
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class RequestOutput:
    request_id: str
    prompt: str | None
    prompt_token_ids: list[int] | None
    prompt_logprobs: Any
    outputs: list[CompletionOutput]
    finished: bool


class Tokenizer:
    """A word is a token; the template is ChatML, with Qwen3's switch."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def apply_chat_template(
        self,
        conversation: list[dict[str, str]],
        tools: Any = None,
        documents: Any = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: bool = True,
        **kwargs: Any,
    ) -> str:
        assert not tokenize, "what comes back for tokenize=True differs between versions of transformers"
        if unknown := set(kwargs) - {"enable_thinking"}:
            raise TypeError(f"unknown {unknown}")
        if any(message["content"] == "refuse me" for message in conversation):
            raise ValueError("the template takes no such message")
        text = "".join(f"<|im_start|> {m['role']} {m['content']} <|im_end|> " for m in conversation)
        if add_generation_prompt:
            text += "<|im_start|> assistant "
            text += "" if kwargs.get("enable_thinking", True) else "<think> </think> "
        return text

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.words += [word for word in dict.fromkeys(text.split()) if word not in self.words]
        return ([0] if add_special_tokens else []) + [1 + self.words.index(word) for word in text.split()]

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(self.words[token - 1] if token else "<s>" for token in tokens)


def _until(stops: Sequence[str], text: str) -> str:
    """Cut a text before the first stop string, as vLLM does unless told to keep it."""
    return text[: min((text.index(stop) for stop in stops if stop in text), default=len(text))].strip()


@dataclass
class Calls:
    """What the stand-in was asked to do."""

    engines: list[dict[str, Any]] = field(default_factory=list)
    batches: list[list[tuple[str, SamplingParams]]] = field(default_factory=list)
    fail_batch: int | None = None
    """Which batch ends with an error of the engine's."""


def install(monkeypatch: pytest.MonkeyPatch, gpus: int = 1) -> Calls:
    """Put the stand-in where `import vllm` finds it, on a machine with so many GPUs."""
    calls = Calls()

    class LLM:
        def __init__(
            self,
            model: str,
            *,
            tokenizer: str | None = None,
            trust_remote_code: bool = False,
            tensor_parallel_size: int = 1,
            dtype: str = "auto",
            quantization: str | None = None,
            revision: str | None = None,
            seed: int | None = None,
            gpu_memory_utilization: float = 0.9,
            **kwargs: Any,
        ) -> None:
            if unknown := set(kwargs) - ENGINE_ARGUMENTS:
                raise TypeError(f"EngineArgs got unexpected keyword arguments {unknown}")
            if model == "nobody/nothing":
                raise OSError("nobody/nothing is not a local folder and is not a valid model identifier\nmore lines")
            if tensor_parallel_size > gpus:
                raise ValueError(f"{tensor_parallel_size} GPUs wanted, {gpus} there")
            self.max_model_len = kwargs.get("max_model_len") or 32768
            self.tokenizer = Tokenizer()
            calls.engines.append({"model": model, "tensor_parallel_size": tensor_parallel_size, **kwargs})

        def get_tokenizer(self) -> Tokenizer:
            return self.tokenizer

        def get_default_sampling_params(self) -> SamplingParams:
            return SamplingParams(temperature=0.6, top_p=0.95, top_k=20)  # Qwen3's generation_config.json

        def generate(
            self,
            prompts: Sequence[dict[str, list[int]]],
            /,
            sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
            *,
            use_tqdm: bool = True,
            lora_request: Any = None,
            priority: list[int] | None = None,
        ) -> list[RequestOutput]:
            assert isinstance(sampling_params, Sequence), "one for each prompt is what the adapter should give"
            if len(prompts) != len(sampling_params):
                raise ValueError("The lengths of prompts and params must be the same.")
            for prompt in prompts:
                if (length := len(prompt["prompt_token_ids"])) >= self.max_model_len:
                    raise ValueError(f"The decoder prompt (length {length}) is longer than {self.max_model_len}")
            texts = [self.tokenizer.decode(prompt["prompt_token_ids"]) for prompt in prompts]
            calls.batches.append(list(zip(texts, sampling_params, strict=True)))
            if calls.fail_batch == len(calls.batches) - 1:
                raise RuntimeError("EngineCore encountered an issue.\nSee stack trace above.")
            return [
                self._output(number, prompt["prompt_token_ids"], params)
                for number, (prompt, params) in enumerate(zip(prompts, sampling_params, strict=True))
            ]

        def _output(self, number: int, prompt: list[int], params: SamplingParams) -> RequestOutput:
            """Say the question back, its seed after it; 'give up' is given up."""
            asked = self.tokenizer.decode(prompt).split("<|im_start|> user ")[-1].split(" <|im_end|>")[0]
            words = _until(params.stop or (), f"{asked} seed {params.seed}").split()
            limit = min(params.max_tokens or sys.maxsize, self.max_model_len - len(prompt))
            reason = "abort" if asked == "give up" else "length" if len(words) > limit else "stop"
            text = " ".join(words[:limit])
            completion = CompletionOutput(0, text, list(range(len(words[:limit]))), None, None, reason)
            return RequestOutput(str(number), None, prompt, None, [completion], True)

    module = ModuleType("vllm")
    for part in (LLM, SamplingParams, RequestOutput, CompletionOutput):
        setattr(module, part.__name__, part)
    monkeypatch.setitem(sys.modules, "vllm", module)
    sampling = ModuleType("vllm.sampling_params")
    sampling.StructuredOutputsParams = StructuredOutputsParams  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", sampling)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    return calls
