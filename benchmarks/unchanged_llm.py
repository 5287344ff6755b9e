"""The LLM of `unchanged.py`: a server on loopback whose answer follows from the prompt alone, not from time or order.

It writes passages of the prompt's own words, orders, scores and choices. As a judge it knows the labels and the
references of the demo, so it passes the planted controls; of all other items it grades some each way. As an agent it
searches twice and finishes with what it saw.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME = "fixed/llm"
"""The name by which commands ask for it. r2med has no card of this name."""

DENIALS = ("that is wrong", "not the answer", "ruled out", "certainly not", "speak against", "Wrong would be")
"""Words of planted controls whose answer denies the reference."""


class FixedLLM:
    """Answers prompts. It has read the demo: `questions` is question -> answer, facts and relevant passages."""

    def __init__(self, demo: Path) -> None:
        self.answers: dict[str, str] = {}
        self.facts: dict[str, list[str]] = {}
        self.relevant: set[tuple[str, str]] = set()
        for folder in sorted(path.parent for path in demo.rglob("query.jsonl")):
            self._learn(folder)

    def _learn(self, folder: Path) -> None:
        queries = {row["id"]: row for row in _rows(folder / "query.jsonl")}
        texts = {row["id"]: row["text"].strip() for row in _rows(folder / "corpus.jsonl")}
        for row in queries.values():
            self.answers[row["text"].strip()] = row.get("answer") or ""
        for row in _rows(folder / "qrels.jsonl"):
            if row["score"] > 0:
                self.relevant.add((queries[row["q_id"]]["text"].strip(), texts[row["p_id"]]))
        if (folder / "nuggets.jsonl").exists():
            for row in _rows(folder / "nuggets.jsonl"):
                question = queries[row["query"]]["text"].strip()
                self.facts.setdefault(question, []).append(row["text"])

    def message(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the message with which a request is answered: a text, or the call of a tool."""
        messages = request.get("messages", ())
        prompt = "\n".join(str(message["content"]) for message in messages)
        if not request.get("tools"):
            text = _evidence(prompt, request["model"]) if "may stand as evidence" in prompt else self.answer(prompt)
            return {"role": "assistant", "content": text}
        turn = sum(message["role"] == "tool" for message in messages)
        words = re.findall(r"[A-Za-z]{6,}", str(messages[1]["content"]))
        if turn < 2:
            name, arguments = "search", {"query": _passage(words, _seed(f"{turn} {prompt}"), 6)}
        else:
            shown = dict.fromkeys(re.findall(r"\[(d\d+)\]", "".join(str(each["content"]) for each in messages[2:])))
            name, arguments = "finish", {"ids": ", ".join(sorted(shown, key=lambda id: _seed(id + prompt))[:4])}
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call{turn}", "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}

    def answer(self, prompt: str) -> str:
        """Return a text in the form that the prompt asks for. The first words that are in the prompt decide."""
        replies: dict[str, Callable[[str], str]] = {
            "grade how useful a passage is": self._passage_grade,
            "compare the answer with the reference": self._answer_grade,
            "apart into nuggets": _nuggets_of_reference,
            "every nugget once": _matched_nuggets,
            "if the passages support the sentence": _supported,
            '{"answer": "…"}': self._reader_answer,
            '{"choice": "A"}': lambda text: json.dumps({"choice": "ABCD"[_seed(text) % 4]}),
            "<answer>passage</answer>": _searching_answer,
            '["…", "…"]': _list_of_queries,
            "the letter of that passage": lambda text: sorted(_letters(text), key=lambda name: _seed(name + text))[0],
            '{"score": 3.5}': lambda text: f'Answer: {_words(text)}\n{{"score": {_seed(text) % 11}}}',
            '{"1": 3, "2": 8.5}': lambda text: f"Answer: {_words(text)}\n{json.dumps(_scores(text))}",
        }
        reply = next((reply for words, reply in replies.items() if words in prompt), None)
        if reply is not None:
            return reply(prompt)
        if scores := _scores(prompt):
            order = sorted(scores, key=lambda number: _seed(number + prompt))
            return f"Answer: {_words(prompt)}\n" + " > ".join(f"[{number}]" for number in order)
        return _words(prompt)

    def _passage_grade(self, prompt: str) -> str:
        pair = _framed(prompt, "Question:"), _framed(prompt, "Passage:")
        is_useful = pair in self.relevant or _seed(str(pair)) % 7 == 0
        return json.dumps({"why": "It is known.", "grade": 2 * is_useful + _seed(f"{pair} level") % 2})

    def _answer_grade(self, prompt: str) -> str:
        """Say right if the answer has half of the words of the reference, and takes nothing back."""
        reference, text = _framed(prompt, "for you only:"), _framed(prompt, "\nAnswer:")
        words = set(re.findall(r"\w+", reference.lower()))
        shared = words & set(re.findall(r"\w+", text.lower()))
        is_right = len(shared) * 2 >= len(words) and not any(words in text for words in DENIALS)
        other = ("wrong", "partly", "nothing")[_seed(reference + text) % 3]
        return json.dumps({"why": "The words.", "grade": "right" if is_right else other})

    def _reader_answer(self, prompt: str) -> str:
        """Answer some questions with the reference and some facts, all with the first words of a passage."""
        question, seed = _framed(prompt, "Question:"), _seed(prompt)
        passage = re.split(r"(?<=\.)\s", _framed(prompt, "Passages:"))[0].strip()
        parts = [f"{self.answers.get(question, '').rstrip('.')}."] if seed % 2 else [f"{_words(prompt)}."]
        parts += [fact for number, fact in enumerate(self.facts.get(question, ())) if seed >> number & 4]
        parts += [f"{re.sub(r'^.*?] *', '', passage).rstrip('.')} [1]."] if passage else []
        return json.dumps({"answer": " ".join(parts)})


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _passage(words: list[str], seed: int, count: int) -> str:
    start = seed % max(1, len(words) - count)
    return " ".join(words[start : start + count])


def _words(prompt: str) -> str:
    """Return thirty words of the prompt."""
    return _passage(re.findall(r"[A-Za-z]{5,}", prompt), _seed(prompt), 30)


def _framed(prompt: str, heading: str) -> str:
    """Return the text in the frame below a heading."""
    return prompt.partition(f"{heading}\n<<<\n")[2].partition("\n>>>")[0].strip()


def _scores(prompt: str) -> dict[str, int]:
    """Return a score for the number of each passage that the prompt counts; empty if it counts none."""
    count = re.search(r"(?:from 1 to|numbers of all|Put all) (\d+)", prompt)
    return {str(number): _seed(f"{number} {prompt}") % 11 for number in range(1, int(count[1]) + 1)} if count else {}


def _list_of_queries(prompt: str) -> str:
    count = int(re.search(r"(?:Write|into) (\d+) ", prompt)[1])  # type: ignore[index]
    return json.dumps([_words(f"{prompt} {number}") for number in range(count)])


def _letters(prompt: str) -> set[str]:
    return set(re.findall(r"^(?:Passage )?\W?([A-Z])\b", prompt, re.MULTILINE)) or {"A"}


def _searching_answer(prompt: str) -> str:
    """Search once, then answer. The prompt itself names the tags of what is found."""
    searched = prompt.count("</information>") > 1
    words = _words(prompt)
    return f"<answer>{words}</answer>" if searched else f"<search>{' '.join(words.split()[:6])}</search>"


def _nuggets_of_reference(prompt: str) -> str:
    fact = " ".join(_framed(prompt, "Reference answer:").split())
    return json.dumps({"nuggets": [{"text": fact, "importance": ("vital", "okay")[_seed(fact) % 2]}]})


def _evidence(prompt: str, model: str) -> str:
    """Score a passage of a build by the words that it shares with the answer. Judges differ by a point."""
    answer, text = _framed(prompt, "Right answer:"), _framed(prompt, "Passage:")
    words = set(re.findall(r"\w{4,}", answer.lower()))
    is_evidence = len(words & set(re.findall(r"\w{4,}", text.lower()))) * 2 > len(words)
    seeds = (_seed(f"{model} {scale} {answer} {text}") for scale in ("relevance", "support"))
    relevance, support = (4 + seed % 2 if is_evidence else seed % 4 for seed in seeds)
    return json.dumps({"why": "The words.", "relevance": relevance, "support": support})


def _matched_nuggets(prompt: str) -> str:
    sentences = dict(re.findall(r"^\W*(\d+)\W+(.*)$", _framed(prompt, "before each sentence:"), re.MULTILINE))
    rows = []
    for number, nugget in re.findall(r"^(\d+)[.:)] (.*)$", _framed(prompt, "Nuggets:"), re.MULTILINE):
        places = [int(place) for place, text in sentences.items() if nugget in text and "not true" not in text]
        rows.append({"nugget": int(number), "sentences": places, "said": "support" if places else "none"})
    return json.dumps({"nuggets": rows})


def _supported(prompt: str) -> str:
    sentence, passages = _framed(prompt, "Sentence:"), _framed(prompt, "Cited passages:")
    bare = re.sub(r"\s*\[\d+\]", "", sentence).rstrip(".")
    return json.dumps({"why": "The words.", "supported": "yes" if bare in passages else "no"})


@contextmanager
def serving(demo: Path, prompts: set[str]) -> Iterator[str]:
    """Serve the LLM, and give its address. The digest of every prompt is added to `prompts`."""
    llm = FixedLLM(demo)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer a request of the chat protocol, streamed or whole."""
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.path.endswith("/chat/completions"):
                self.send_error(404)
                return
            prompts.add(hashlib.sha256(json.dumps(request["messages"], sort_keys=True).encode()).hexdigest())
            body, kind = _body(llm.message(request), request.get("stream", False))
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256  # a client that finds the queue full waits a second

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


def _body(message: dict[str, Any], streamed: bool) -> tuple[bytes, str]:
    finish = "tool_calls" if "tool_calls" in message else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    if not streamed:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return json.dumps({"choices": [choice], "usage": usage}).encode(), "application/json"
    parts = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    ]
    lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
    return ("".join(lines) + "data: [DONE]\n\n").encode(), "text/event-stream"
