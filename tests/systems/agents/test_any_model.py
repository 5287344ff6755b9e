"""Whatever a model writes and a search finds, a conversation comes to its end within its limits."""

import json

from hypothesis import given
from hypothesis import strategies as st

from r2med.data import Query
from r2med.models.llm.chat import Failure, RawAnswer, Sampling
from r2med.models.prompts.templates import open_templates
from r2med.systems.agents.agent_loop import Dialogue, converse
from r2med.systems.agents.agent_state import Answered, Hit, trace
from r2med.systems.agents.search_o1 import BEGIN_QUERY, BEGIN_RESULT, DOCUMENT_FIELDS, END_QUERY, Reader, SearchO1Agent
from r2med.systems.agents.search_r1 import SearchR1Agent
from r2med.systems.agents.sources import SourceResult
from support.agents import CARD
from support.scripted_chat import ScriptedChat

TEMPLATES = open_templates()
MARKS = ["<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>", BEGIN_QUERY, END_QUERY, BEGIN_RESULT]
TEXTS = st.lists(st.sampled_from([*MARKS, "**Final Passage**", "gout", " ", "\n"]), max_size=8).map("".join)
ANSWERS = st.one_of(
    st.builds(RawAnswer, TEXTS, TEXTS, st.sampled_from(["stop", "length", "content_filter"])),
    st.sampled_from([Failure("server", "no"), Failure("context_length", "too long")]),
)
DOCUMENTS = st.sampled_from([(), (Hit("a", "T\ntext", 1.0),), Failure("timeout", "slow")])
TURNS = 3


class Source:
    def __init__(self, data):
        self.data = data
        self.searches = 0

    def search(self, requests):
        self.searches += len(requests)
        return SourceResult(tuple(self.data.draw(DOCUMENTS) for _ in requests))


def end_of(agent, data):
    llm, source = ScriptedChat(lambda request: data.draw(ANSWERS)), Source(data)
    dialogue = Dialogue("S", Sampling(max_tokens=100), 4096, agent.stop)
    (conversation,) = converse(agent, dialogue, llm, source, [Query("1", "Q")]).conversations
    json.dumps(trace(conversation), allow_nan=False)
    assert conversation.over and len(conversation.turns) <= TURNS + 1
    end = conversation.state
    if isinstance(end, Answered):
        assert end.text and end.text == end.text.strip()
    return conversation, llm, source


@given(st.data())
def test_search_r1_ends(data):
    conversation, llm, source = end_of(SearchR1Agent(TEMPLATES.template("search-r1", "post"), TURNS), data)
    # One more for the last generation, one for the notice after a context that was too small, one that fails there.
    assert len(llm.asked) <= TURNS + 3 and source.searches <= TURNS
    if isinstance(conversation.state, Answered):
        assert "<answer>" not in conversation.state.text and "</search>" not in conversation.state.text


@given(st.data(), st.sampled_from(["plain", "think"]), st.booleans())
def test_search_o1_ends_and_never_with_its_thoughts(data, answer, one_text):
    card = CARD.model_copy(update={"answer": answer})
    reader = Reader(TEMPLATES.template("search-o1-documents", fields=DOCUMENT_FIELDS), 2000)
    agent = SearchO1Agent(TEMPLATES.template("search-o1", "post"), reader, card, TURNS, 2, one_text)
    conversation, llm, source = end_of(agent, data)
    assert len(llm.asked) <= 2 * (TURNS + 2) and source.searches <= 2
    if isinstance(conversation.state, Answered):
        written = conversation.state.text
        assert not any(mark in written for mark in ("<think>", "</think>", BEGIN_QUERY, BEGIN_RESULT))
