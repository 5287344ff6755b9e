"""Builds whose steps write what a test gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from r2med.construction.build_plan import BuildPlan, PlanFile
from r2med.construction.items import (
    Candidate,
    Found,
    Judgement,
    PageChunk,
    Rejected,
    SourceQuestion,
    Stream,
    StreamItem,
)
from r2med.construction.pipeline import BuildFolder
from r2med.construction.step import Step, StepWork, Streams
from r2med.foundation.runtime.runtime import Runtime

SYSTEMS = ("Digestive", "Nervous", "Cardiovascular", "Endocrine", "Other / NA")
TOPICS = (
    *("bread and a tired bowel", "a numb left hand", "a fast pulse at rest", "thirst and pale urine"),
    *("a rash after rain", "a cough in spring", "joints stiff at dawn", "a limp in a child"),
)


def given(stream: Stream, items: Sequence[StreamItem | Rejected], prompt: str = "", **told: Any) -> Step:
    """Return a step that writes these items; `told` is part of what it says it depends on."""

    class Given(Step, kind="build"):
        """Write what a test gives."""

        writes: ClassVar[Stream] = stream
        name: str = f"give-{stream}"

        def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
            if prompt:
                work.facts["prompt"] = prompt
            yield from items

        def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
            return {**super().key(streams, runtime), **told}

    return Given()


def small_build(
    folder: Path, queries: int = 12, hostile: str = "", texts: Mapping[int, str] = MappingProxyType({}), **facts: Any
) -> BuildFolder:
    """Return a build that was run: three candidates a question, the first evident, and a planted control.

    `texts` are those of questions, by number, that have another text.
    """
    questions = [_question(number, hostile) for number in range(queries)]
    questions = [
        each.model_copy(update={"text": texts.get(number, each.text)}) for number, each in enumerate(questions)
    ]
    kinds = ("gold", "near", "far")
    chunks = [
        PageChunk(
            id=f"{kind}-{number}",
            text=f"{TOPICS[number % len(TOPICS)] if kind != 'far' else 'Nothing of it'} {kind} {number} {hostile}",
            page=f"page-{number}",
            url=f"https://example.org/{kind}/{number}",
            source="textbook.jsonl:" + str(number + 1),
            licence="CC-BY-4.0",
        )
        for number in range(queries)
        for kind in kinds
    ]
    pairs = [(f"q{number}", f"{kind}-{number}", kind) for number in range(queries) for kind in kinds]
    found = (Found(member="bm25", view="query", rank=1),)
    candidates = [Candidate(question=q, chunk=c, found=found) for q, c, _ in pairs]
    candidates += [
        Candidate(question=f"q{n}", chunk="control-stuffed", control="stuffed", text="words") for n in range(queries)
    ]
    scores = {"gold": (5, 4), "near": (3, 2), "far": (0, 1)}
    judgements = [
        Judgement(question=q, chunk=c, judge="qwq-32b", relevance=r, support=s, rationale=f"It tells. {hostile}")
        for q, c, kind in pairs
        for r, s in [scores[kind]]
        if not (kind == "gold" and q == "q0")
    ]
    judgements += [
        Judgement(
            question=f"q{n}", chunk="control-stuffed", judge="qwq-32b", relevance=4 * (n % 3 == 0), support=4
        ).model_copy(update={"control": "stuffed"})
        for n in range(queries)
    ]
    judge = {"judges": [{"llm": {"model": "Qwen/QwQ-32B"}, "prompt": "0123456789abcdef" * 2}]}
    rejected = Rejected.of(_question(99, hostile), "Too Simple", "one step")
    steps = (
        given("questions", [*questions, rejected]),
        given("chunks", chunks),
        given("candidates", candidates),
        given("judgements", judgements, prompt=f"Judge {{text}}. {hostile}", **judge),
    )
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "plan.toml"
    file.write_text("name = 'small'\n", "utf-8")
    plan = PlanFile(**{"name": "small", "steps": ("give",), "title": f"A small set {hostile}", **facts})
    made = BuildFolder(BuildPlan(file, plan, steps), folder / "out")
    made.run(Runtime())
    return made


def _question(number: int, hostile: str) -> SourceQuestion:
    return SourceQuestion(
        id=f"q{number}",
        text=f"What is the cause of {TOPICS[number % len(TOPICS)]}, and why {'so ' * number}often? {hostile}",
        answer=f"Answer {number}",
        body_system=SYSTEMS[number % len(SYSTEMS)],
        kind=("DIA/disease", "TRT/drug", "EXM/imaging")[number % 3],
        source=f"forum.csv:{number + 2}",
        licence="CC-BY-SA-4.0",
        original="before" if number == 1 else "",
    )
