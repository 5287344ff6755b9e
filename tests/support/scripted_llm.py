"""An LLM whose answers are written beforehand, asked through the journal as any other."""

import json
from pathlib import Path
from typing import Any

from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store


def scripted(tmp_path: Path, store: Store, *rules: tuple[list[str], dict[str, Any] | str]) -> Setup:
    """Return a setup whose LLM gives the answer of the first rule whose texts are in the prompt."""
    file = tmp_path / "script.jsonl"
    lines = [{"when": when, "answer": a if isinstance(a, str) else json.dumps(a)} for when, a in rules]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Runtime(store=store, llm="script", model_paths={"script": file})  # type: ignore[arg-type]
