"""Builds in a test's folder: sources and scripted answers are written, the plan is made of steps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.construction.build_plan import BuildPlan
from r2med.construction.pipeline import BuildFolder
from r2med.foundation.store import Store


def plan_file(
    folder: Path,
    steps: Sequence[str],
    sources: Mapping[str, str | bytes] | None = None,
    answers: Sequence[tuple[Sequence[str], Any]] = (),
) -> Path:
    """Write a plan with its sources, and scripted answers: (texts of the prompt, what is answered)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (sources or {}).items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    rules = [
        {"when": list(when), "answer": answer if isinstance(answer, str) else json.dumps(answer)}
        for when, answer in answers
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    plan = f'name = "small"\nllm = "scripted"\nanswers = "answers.jsonl"\nsteps = {json.dumps(list(steps))}\n'
    (folder / "plan.toml").write_text(plan)
    return folder / "plan.toml"


def built(folder: Path, *given: Any, **more: Any) -> BuildFolder:
    """Write a plan and build it; see `plan_file`."""
    plan = BuildPlan.read(plan_file(folder, *given, **more))
    build = BuildFolder(plan, folder / "out")
    build.run(plan.setup(store=Store(folder / "store")))
    return build


def lines(*rows: Mapping[str, Any]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)
