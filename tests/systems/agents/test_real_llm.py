"""All agents with a real LLM, SmolLM2 with 135M parameters: it seldom answers, and that is counted."""

from dataclasses import replace

import pytest

from r2med import load
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.chat import Message, Sampling
from r2med.models.llm.journaled import JournaledChat
from r2med.models.llm.llama import LlamaBackend
from r2med.models.llm.llm_cards import LLMS
from r2med.systems.agents.agent_loop import Dialogue
from r2med.systems.agents.agent_state import Conversation
from support.agents import agent, ranked, ranking_agent

pytestmark = pytest.mark.slow

CARD = LLMS.card("smollm2").model_copy(update={"max_tokens": 8})
SHORT = {
    "search-r1.post.txt": "Write <search>query</search> or <answer>text</answer>.\n{query}",
    "search-o1.post.txt": "Search {limit} times, then write a passage.\n{query}",
    "agent.post.txt": "{calls}\n{query}",
    "agent-tags.txt": "Write <search>query</search> or <finish>ids</finish>.",
}
"""A prompt of ours takes a minute to read on a busy machine."""


@pytest.fixture(scope="module")
def backend():
    return LlamaBackend(CARD, Runtime(threads=1))


@pytest.mark.parametrize(("method", "via"), [("search-r1", "completion"), ("search-o1", "chat")])
def test_a_conversation_ends_with_an_answer_or_a_counted_failure(backend, store, tmp_path, method, via):
    for name, text in SHORT.items():
        (tmp_path / name).write_text(text)
    whole = load("demo/Biology", store)
    one = replace(whole, queries=(replace(whole.queries[0], text="Why do fingers wrinkle?"),))
    settings = {"turns": 1, "topk": 1, "via": via, "prompts": tmp_path}
    llm = JournaledChat(CARD, backend, store)
    expansion = agent(method, llm, card=CARD, **settings).expand(one, store)
    trace = expansion.traces[one.queries[0].id]
    assert len(expansion.queries[0].generated) + expansion.failures == 1
    assert sum(expansion.failure_kinds.values()) == expansion.failures
    assert 1 <= len(trace["turns"]) <= 2 and trace["total"]["completion_tokens"] > 0
    assert bool(trace["text"]) == (trace["failure"] is None)
    assert agent(method, llm, card=CARD, **settings).expand(one, store).traces == expansion.traces


def test_an_agent_without_tool_calls_ends_with_a_ranking_or_a_counted_failure(backend, store, tmp_path):
    for name in ("agent.post.txt", "agent-tags.txt"):
        (tmp_path / name).write_text(SHORT[name])
    whole = load("demo/Biology", store)
    one = replace(whole, queries=(replace(whole.queries[0], text="Why do fingers wrinkle?"),))
    settings = {"turns": 2, "topk": 1, "calls": "tags", "prompts": tmp_path}
    llm = JournaledChat(CARD, backend, store)
    expansion = ranked(ranking_agent("agent", llm, card=CARD, **settings), one, store)
    trace = expansion.traces[one.queries[0].id]
    assert len(expansion.rankings) + expansion.failures == 1
    assert 1 <= len(trace["turns"]) <= 2 and trace["total"]["completion_tokens"] > 0
    assert all(turn["status"] for turn in trace["turns"])
    assert trace["finds"] == list(expansion.rankings.get(one.queries[0].id, ()))
    assert ranked(ranking_agent("agent", llm, card=CARD, **settings), one, store).traces == expansion.traces


def test_our_rendering_of_a_chat_is_the_model_s_own(backend):
    conversation = Conversation((Message("user", "Name a symptom of gout."),))
    greedy = Sampling(temperature=0.0, max_tokens=8, seed=1)
    requests = [Dialogue("Be brief.", greedy, 2048, (), template).request(conversation) for template in ("", "chatml")]
    answers = {}
    backend.answer(requests, answers.__setitem__)
    chat, raw = answers[0], answers[1]
    assert chat.content.strip() and chat.content == raw.content
    assert chat.prompt_tokens == raw.prompt_tokens
