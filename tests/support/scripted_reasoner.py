"""An LLM that knows the demo's truth, and errs on purpose: it writes texts and judges passages by looking them up.

It stands for a good but fallible model: every third query it expands by another query's text, and about every fifth
passage it misjudges. Whatever a pipeline makes of it is the pipeline's doing.
"""

import hashlib
import json
import re

from r2med.data import Dataset
from r2med.llm.contracts import ChatRequest
from r2med.store import Store
from r2med.system import System
from support.scripted_chat import ScriptedChat

_QUERY = re.compile(r"<query>\n(.*?)\n</query>", re.DOTALL)
_PASSAGE = re.compile(r"<passage (\d+)>\n(.*?)\n</passage \1>", re.DOTALL)


def flat(text: str) -> str:
    return " ".join(text.split())


def chance(*words: str) -> float:
    """Return a number from 0 to 1 that looks random and is the same everywhere."""
    return int(hashlib.sha256("\0".join(words).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


class ScriptedReasoner(ScriptedChat):
    def __init__(self, dataset: Dataset, store: Store) -> None:
        super().__init__(self._answer)
        expanded = System.parse("hyde(author) → bm25").expand(dataset, store).queries
        written = [query.generated[0] for query in expanded]
        wrong = [written[(place + 1) % len(written)] if place % 3 == 0 else text for place, text in enumerate(written)]
        self._texts = {query.text: text for query, text in zip(dataset.queries, wrong, strict=True)}
        self._grades = {query.text.strip(): dataset.qrels.get(query.id, {}) for query in dataset.queries}
        self._ids = {flat(text): name for name, text in dataset.corpus}

    def _answer(self, request: ChatRequest) -> str:
        prompt = request.messages[-1].content
        if judged := _QUERY.search(prompt):
            return self._judged(judged[1], prompt)
        return next(text for query, text in self._texts.items() if query in prompt)

    def _judged(self, query: str, prompt: str) -> str:
        scores = {}
        for number, text in _PASSAGE.findall(prompt):
            name = next(name for known, name in self._ids.items() if known.startswith(flat(text)[:200]))
            luck = chance(query, name)
            good = (self._grades[query].get(name, 0) > 0) != (luck < 0.2)
            scores[number] = round((6 if good else 1) + 3 * luck, 1)
        return json.dumps(scores)
