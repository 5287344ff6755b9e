"""vLLM in process, against a stand-in with its documented interface: what is handed over, and what comes back."""

import os
import sys
from dataclasses import replace

import pytest

from r2med.errors import MissingExtraError, UserError
from r2med.llm import vllm
from r2med.llm.chat import ChatRequest, Failure, Message, RawAnswer, Sampling
from r2med.llm.llm_cards import LLMCard
from r2med.llm.vllm import VllmBackend
from r2med.setup import Setup
from support import vllm_standin


def card(**changes):
    return LLMCard(**{"name": "qwen", "model": "Qwen/Qwen3-32B", "backend": "vllm", "context_length": 100, **changes})


def ask(text, sample=0, **sampling):
    return ChatRequest((Message("user", text),), Sampling(**sampling), sample)


def ask_raw(prompt, **sampling):
    return ChatRequest(sampling=Sampling(**sampling), prompt=prompt)


def answers(backend, *requests):
    found = {}

    def done(place, answer):
        assert place not in found
        found[place] = answer

    backend.answer(requests, done)
    assert sorted(found) == list(range(len(requests)))
    return [found[place] for place in range(len(requests))]


@pytest.fixture
def calls(monkeypatch):
    return vllm_standin.install(monkeypatch, gpus=2)


def test_answers_have_text_finish_reason_and_tokens(calls):
    whole, cut = answers(VllmBackend(card(), Setup()), ask("one two", seed=1), ask("one two", seed=1, max_tokens=1))
    assert (whole.content, whole.finish_reason, whole.completion_tokens) == ("one two seed 1", "stop", 4)
    assert (cut.content, cut.finish_reason, cut.completion_tokens) == ("one", "length", 1)
    assert whole.prompt_tokens == 7  # the question's two words, and five of the template


def test_all_gpus_are_used_and_the_engine_is_made_once(calls):
    backend = VllmBackend(card(), Setup())
    assert calls.engines == []
    answers(backend, ask("one"))
    answers(backend, ask("two"))
    assert [engine["tensor_parallel_size"] for engine in calls.engines] == [2]
    assert [engine["max_model_len"] for engine in calls.engines] == [100]


def test_the_chat_template_is_applied_with_the_switch_for_thinking(calls):
    for thinking in (None, True, False):
        answers(VllmBackend(card(thinking=thinking), Setup()), ask("one"))
    plain, on, off = [batch[0][0] for batch in calls.batches]
    assert plain == on == "<|im_start|> user one <|im_end|> <|im_start|> assistant"
    assert off == f"{on} <think> </think>"


def test_what_is_not_set_is_as_the_model_has_it(calls):
    answers(
        VllmBackend(card(), Setup()),
        ask("one"),
        ask("one", temperature=0.0, top_k=5, repetition_penalty=1.1, stop=("x",)),
    )
    left, given = (params for _, params in calls.batches[0])
    assert (left.temperature, left.top_p, left.top_k, left.seed, left.max_tokens, left.stop) == (
        *(0.6, 0.95, 20),
        *(None, None, None),
    )
    assert (given.temperature, given.top_p, given.top_k, given.repetition_penalty) == (0.0, 0.95, 5, 1.1)
    assert given.stop == ["x"]


def test_the_schema_of_an_answer_is_handed_over(calls):
    answers(VllmBackend(card(), Setup()), replace(ask("one"), schema="{}"), ask("two"))
    given = [sampling.structured_outputs for _, sampling in calls.batches[0]]
    assert given == [vllm_standin.StructuredOutputsParams(json="{}"), None]


def test_samples_have_seeds_of_their_own(calls):
    first, second = answers(VllmBackend(card(), Setup()), ask("one", seed=42), ask("one", sample=1, seed=42))
    assert (first.content, second.content) == ("one seed 42", "one seed 43")


def test_finished_ones_are_reported_chunk_by_chunk(calls):
    reported = []

    def done(place, _):
        reported.append((place, len(calls.batches)))

    VllmBackend(card(), Setup()).answer([ask(f"q{n}") for n in range(2 * vllm.CHUNK + 1)], done)
    assert [len(batch) for batch in calls.batches] == [vllm.CHUNK, vllm.CHUNK, 1]
    assert reported[vllm.CHUNK - 1] == (vllm.CHUNK - 1, 1)
    assert reported[-1] == (2 * vllm.CHUNK, 3)


def test_a_raw_prompt_is_continued_without_a_template_and_stops_where_it_is_told_to(calls):
    asked = ask_raw("<|im_start|> user one <|im_end|>", seed=1, stop=("seed",))
    conversation, raw = answers(VllmBackend(card(thinking=False), Setup()), ask("two", seed=1), asked)
    texts = [text for text, _ in calls.batches[0]]
    assert texts[1] == "<s> <|im_start|> user one <|im_end|>", "with the special tokens that vLLM adds to a text"
    assert texts[0].endswith("<think> </think>")
    assert calls.batches[0][1][1].stop == ["seed"]
    assert (raw.content, raw.finish_reason, raw.prompt_tokens) == ("one", "stop", 5)
    assert conversation.content == "two seed 1"


def test_a_raw_prompt_over_the_context_fails_alone(calls):
    fits, too_long = answers(VllmBackend(card(), Setup()), ask_raw("word " * 98), ask_raw("word " * 99))
    assert isinstance(fits, RawAnswer)
    assert (too_long.kind, too_long.message) == (
        "context_length",
        "the prompt has 100 tokens, the model takes 100 in all",
    )


def test_a_prompt_over_the_context_fails_alone(calls):
    fits, too_long, also_fits = answers(VllmBackend(card(), Setup()), ask("one"), ask("word " * 95), ask("two"))
    assert isinstance(fits, RawAnswer) and isinstance(also_fits, RawAnswer)
    assert isinstance(too_long, Failure) and too_long.kind == "context_length"
    assert too_long.message == "the prompt has 100 tokens, the model takes 100 in all"


def test_a_message_that_the_template_refuses_and_a_request_given_up_fail_alone(calls):
    refused, given_up, fine = answers(VllmBackend(card(), Setup()), ask("refuse me"), ask("give up"), ask("one"))
    assert (refused.kind, given_up.kind) == ("bad_request", "server")
    assert isinstance(fine, RawAnswer)


def test_an_engine_that_fails_loses_only_its_chunk(calls):
    calls.fail_batch = 0
    found = answers(VllmBackend(card(), Setup()), *(ask(f"q{n}") for n in range(vllm.CHUNK + 1)))
    assert {answer.kind for answer in found[:-1]} == {"server"}
    assert found[0].message == "vLLM: RuntimeError: EngineCore encountered an issue."
    assert isinstance(found[-1], RawAnswer)


def test_a_model_that_cannot_be_loaded_is_one_line(calls):
    with pytest.raises(UserError, match=r"^model qwen: vLLM cannot load nobody/nothing: OSError: .* identifier$"):
        answers(VllmBackend(card(model="nobody/nothing"), Setup()), ask("one"))


def test_its_use_is_not_reported_to_its_makers(calls, monkeypatch):
    monkeypatch.delenv("VLLM_NO_USAGE_STATS", raising=False)
    answers(VllmBackend(card(), Setup()), ask("one"))
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"


def test_without_vllm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtraError, match=r"model qwen .*\.\[vllm\]"):
        answers(VllmBackend(card(), Setup()), ask("one"))


def test_a_folder_given_by_hand_is_described_by_its_contents_never_by_its_place(calls, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    backend = VllmBackend(card(), Setup(model_paths=(("qwen", tmp_path),)))
    answers(backend, ask("one"))
    assert calls.engines[0]["model"] == str(tmp_path)
    assert str(tmp_path) not in str(backend.describe()) and backend.describe()["fingerprint"]
    assert VllmBackend(card(), Setup()).describe() == {
        "backend": "vllm",
        "model": "Qwen/Qwen3-32B",
        "context_length": 100,
        "thinking": None,
    }
