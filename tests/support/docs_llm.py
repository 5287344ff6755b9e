"""The LLM of the docs' commands: answers each kind of prompt in the form that the prompt asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from r2med.data import load
from r2med.models.llm.llm_cards import LLMS
from support import chat_server
from support.chat_server import Exchange

PASSAGE = "Iron is absorbed in the small bowel."
JUDGED = ("demo/Biology", "demo/Medical-Sciences")
"""Datasets whose relevant documents the LLM knows: a judge must get planted controls right."""
THINKING = {card.model for card in LLMS.values() if card.answer == "think"}
DENIALS = ("that is wrong", "not the answer", "ruled out", "certainly not", "speak against", "Wrong would be")
LIKELY = [("true", {"true": -0.1, "false": -2.4})]
"""How sure it is where it says true."""
CALLS = (("search", '{"query": "light and water"}'), ("finish", '{"ids": ["d1"]}'))
"""What it calls if it has tools, one after the other."""


def _numbers(prompt: str) -> list[int]:
    """Return the numbers of the passages in a prompt."""
    return sorted({int(number) for number in re.findall(r"^(?:<passage |\[)(\d+)[>\]]", prompt, re.MULTILINE)})


def _scores(prompt: str) -> str:
    return json.dumps(dict.fromkeys(map(str, _numbers(prompt)), 5))


def _order(prompt: str) -> str:
    return " > ".join(f"[{number}]" for number in _numbers(prompt))


def _example(prompt: str) -> str:
    """Return the answer that the prompt shows as an example."""
    *_, example = re.findall(r"^(?:Reply with )?(\{.*\})", prompt, re.MULTILINE)
    return str(example)


def _framed(prompt: str, heading: str) -> str:
    """Return the text in the frame below a heading."""
    return prompt.partition(f"{heading}\n<<<\n")[2].partition("\n>>>")[0].strip()


def _graded_answer(prompt: str) -> str:
    """Say right if the answer has half of the words of the reference, and takes nothing back."""
    reference, text = _framed(prompt, "for you only:"), _framed(prompt, "\nAnswer:")
    words = set(re.findall(r"\w+", reference.lower()))
    right = len(words & set(re.findall(r"\w+", text.lower()))) * 2 >= len(words)
    right = right and not any(words in text for words in DENIALS)
    return json.dumps({"why": "The words.", "grade": "right" if right else "wrong"})


def _matched_nuggets(prompt: str) -> str:
    text = _framed(prompt, "before each sentence:")
    found = re.findall(r"^(\d+)[.:)] (.*)$", _framed(prompt, "Nuggets:"), re.MULTILINE)
    said = [(int(number), nugget in text) for number, nugget in found]
    rows = [{"nugget": n, "sentences": [1] * yes, "said": "support" if yes else "none"} for n, yes in said]
    return json.dumps({"nuggets": rows})


def _supported(prompt: str) -> str:
    sentence, passages = re.findall(r"<<<\n(.*?)\n>>>", prompt, re.DOTALL)
    return json.dumps({"why": "The words.", "supported": sentence in passages})


@cache
def _relevant() -> set[tuple[str, str]]:
    """Return pairs of the text of a query and the text of a relevant document."""
    pairs = set()
    for dataset in map(load, JUDGED):
        for query in dataset.queries:
            rows = dataset.corpus.rows([name for name, grade in dataset.qrels[query.id].items() if grade > 0])
            pairs |= {(query.text.strip(), text.strip()) for text in dataset.corpus.texts(rows.tolist())}
    return pairs


def _grade(prompt: str) -> str:
    pair = _framed(prompt, "Question:"), _framed(prompt, "Passage:")
    return json.dumps({"why": "It is known.", "grade": 3 if pair in _relevant() else 0})


def _nuggets(prompt: str) -> str:
    fact = " ".join(_framed(prompt, "Reference answer:").split())
    return json.dumps({"nuggets": [{"text": fact, "importance": "vital"}]})


def _search_r1(prompt: str) -> str:
    """Search once. The prompt itself names the tags of what is found."""
    found = prompt.count("</information>") > 1
    return f"<answer>{PASSAGE}</answer>" if found else "<search>light and water</search>"


def _agent(prompt: str) -> str:
    return "<finish>d1</finish>" if "[d1]" in prompt else "<search>light and water</search>"


REPLIES: dict[str, str | Callable[[str], str]] = {
    "<answer>passage</answer>": _search_r1,
    "<finish>ids</finish>": _agent,
    "the score of every number": _scores,
    "> between them": _order,
    "numbers as [] > []": _order,
    "the letter of that passage": "A",
    "only with 'true' or 'false'": "true",
    'such as {"score"': '{"score": 5}',
    "with a JSON list of": '["low ferritin", "coeliac disease", "iron is absorbed in the bowel", "pale stools"]',
    "compare the answer with the reference": _graded_answer,
    "apart into nuggets": _nuggets,
    "every nugget once": _matched_nuggets,
    "if the passages support the sentence": _supported,
    "grade how useful a passage is": _grade,
    "one JSON object": _example,
    "Reply with {": _example,
}
"""Words of a prompt, and the answer; the first words that are in the prompt count. All others get a passage."""


async def answer(exchange: Exchange) -> None:
    """Answer as the LLM that is asked for would: by a call, after thinking, or at once."""
    body: dict[str, Any] = exchange.request.body
    messages = body.get("messages", ())
    if body.get("tools"):
        turn = sum(message["role"] == "tool" for message in messages)
        await chat_server.answer("", calls=CALLS[turn : turn + 1], finish="tool_calls")(exchange)
        return
    prompt = "\n".join(str(message["content"]) for message in messages) or exchange.request.question
    found = next((reply for words, reply in REPLIES.items() if words in prompt), PASSAGE)
    reply = found(prompt) if callable(found) else found
    thought = "It may be iron.</think>" if body.get("model") in THINKING else ""
    await chat_server.answer(thought + reply, logprobs=LIKELY if reply == "true" else ())(exchange)
