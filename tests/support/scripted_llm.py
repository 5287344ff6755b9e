"""An LLM whose answers are written beforehand, asked through the journal as any other."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2med.assessment.answers.answer_controls import DENIALS, WORDINGS
from r2med.assessment.panels.control_texts import ANSWER_ORDERS
from r2med.data.dataset import Query
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store


def scripted(tmp_path: Path, store: Store, *rules: tuple[list[str], dict[str, Any] | str]) -> Setup:
    """Return a setup whose LLM gives the answer of the first rule whose texts are in the prompt."""
    file = tmp_path / "script.jsonl"
    lines = [{"when": when, "answer": a if isinstance(a, str) else json.dumps(a)} for when, a in rules]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Runtime(store=store, llm="script", model_paths={"script": file})  # type: ignore[arg-type]


def graded_controls(queries: Sequence[Query]) -> list[tuple[list[str], dict[str, Any] | str]]:
    """Return the rules of a judge of answers that gets planted controls right, if their last sentence decides."""
    known = [(query.answer, query.answer.strip().rstrip(".")) for query in queries if query.answer]
    right, wrong = {"why": "the same", "grade": "right"}, {"why": "no", "grade": "wrong"}
    return [
        *(([f"{form.format(bare)}\n>>>"], wrong) for _, bare in known for form in DENIALS),
        *(
            ([f"for you only:\n<<<\n{reference}\n", f"{form.format(bare)}\n>>>"], right)
            for reference, bare in known
            for form in WORDINGS
        ),
        *(([f"{form.format(bare)}\n>>>"], wrong) for _, bare in known for form in WORDINGS),
        *(([order], wrong) for order in ANSWER_ORDERS),
    ]
