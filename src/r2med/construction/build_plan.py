"""Read the plan of a build: its steps, and facts for the dataset's card and datasheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from r2med.construction.cited_links import LINKS_FILE
from r2med.construction.diagnosis_groups import GROUPS_FILE
from r2med.construction.items import Stream
from r2med.construction.labels import Labelling
from r2med.construction.step import Step, beside
from r2med.data.dataset_cards import cards
from r2med.foundation.core.errors import UserError, nearest, nearest_path
from r2med.foundation.core.names import read_toml, validated
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import stage_of

PLAN = "plan.toml"
"""Name of the plan's copy in the folder of a build."""
GUIDELINE = "guideline.md"
"""Name of the guideline for reviewers. A guideline beside the plan is copied into the build."""
RESERVED_NAMES = (PLAN, GUIDELINE, "steps", "reviews.sqlite", LINKS_FILE, GROUPS_FILE)
"""Files and folders of every build, which a plan's name must not clash with."""


class PlanFile(BaseModel):
    """The content of a plan's TOML file: the steps, and facts for the dataset's card and datasheet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """The name of the dataset, and of its folder in the build."""
    steps: tuple[str, ...] = Field(min_length=1)
    """The steps as text, such as NAME(ARGUMENT, SETTING=VALUE)."""
    title: str = ""
    """The title of the dataset."""
    description: str = ""
    """What the dataset holds, in a few sentences."""
    task: str = ""
    """The task that the dataset belongs to. Datasets of one task are averaged."""
    scenario: str = ""
    """The clinical setting of the queries."""
    kind: str = ""
    """Form of the queries: post, exam, case or similar case."""
    query_origin: str = ""
    """How the queries were written, for the datasheet: for example, by physicians from diagnoses that they chose."""
    reviews_per_item: int = Field(1, ge=1, le=1000)
    """Number of people who are to review each text. A question or page that one of them rejects is left out only when
    this many reviewed it, and most of them reject it."""
    reviewers: str = ""
    """Who reviewed the dataset and what qualifies them, in your own words, for the datasheet."""
    licence: str = ""
    """The licence of the dataset."""
    creators: tuple[str, ...] = ()
    """The people or groups that made the dataset."""
    url: str = ""
    """The address where the dataset is published."""
    llm: str = ""
    """The LLM for steps that do not name one."""
    answers: str = ""
    """A file of scripted answers (see `llm.scripted`) that replaces that LLM, so that the plan runs offline."""
    labels: Labelling = Labelling()
    """Scores from which a candidate is labelled positive, or is discarded."""
    version: str = "1.0.0"
    """Version of the dataset. Increase it when the dataset is published again."""
    biases: tuple[str, ...] = ()
    """Groups or topics that are over- or under-represented."""
    limits: tuple[str, ...] = ()
    """Known problems of the dataset, for the datasheet."""
    sensitive: str = ""
    """Personal or sensitive information in the dataset, and how it was handled."""
    uses: str = ""
    """Intended and unintended uses."""
    impact: str = ""
    """Possible benefits and harms."""


@dataclass(frozen=True)
class BuildPlan:
    """A plan that was read, with its steps as declared values."""

    file: Path
    facts: PlanFile
    steps: tuple[Step, ...]

    @classmethod
    def read(cls, path: Path | str) -> BuildPlan:
        """Read a plan. Raises UserError with the step or the field that is wrong."""
        file = Path(path)
        if not file.is_file():
            guess = f" (did you mean {file / PLAN}?)" if (file / PLAN).is_file() else nearest_path(str(path))
            raise UserError(f"there is no plan {file}{guess}: r2med build example exam -o DIR writes an example")
        content = read_toml(file, "plan")
        for field, example in (("name", '"my-set"'), ("steps", '["read-table(questions.csv)", …]')):
            if not content.get(field):
                raise UserError(f"{file}: a plan needs {field} = {example}: r2med build example exam -o DIR writes one")
        facts = validated(PlanFile, content, file)
        if facts.name in RESERVED_NAMES:
            raise UserError(f"{file}: every build has a file or folder {facts.name!r}: choose another name")
        kinds = {"post", "exam", "case", *(card.kind for card in cards().values() if card.kind)}
        if facts.kind and facts.kind.replace("-", " ") not in kinds:
            raise UserError(f"{file}: no kind {facts.kind!r}{nearest(facts.kind, kinds)}: {', '.join(sorted(kinds))}")
        steps = tuple(_step(text, file) for text in facts.steps)
        _check_order(steps, file)
        return cls(file, facts, steps)

    def setup(self, llm: str = "", **settings: Any) -> Setup:
        """Return the setup of the plan. `settings` are fields of `Setup` and take precedence."""
        if self.facts.answers and llm in ("", self.facts.llm):
            given = settings.get("model_paths", ())
            settings["model_paths"] = (*given, (self.facts.llm, beside(self.file.parent, self.facts.answers)))
        return Setup(llm=llm or self.facts.llm, **settings)


def _check_order(steps: Sequence[Step], file: Path) -> None:
    """Raise UserError if a step reads what no earlier step writes, or if pages are read after the last chunk step."""
    written: set[Stream] = set()
    for step in steps:
        for stream in step.reads:
            if stream not in written and stream not in step.optional:
                writers = [other.name for other in steps if other.writes == stream and stream not in other.reads]
                hint = f"move {writers[0]} before it" if writers else f"add a step that writes {stream} before it"
                raise UserError(f"{file}: {step.name} needs {stream}, and no step before it writes any; {hint}")
        written.add(step.writes)
    users = [number for number, step in enumerate(steps) if step.name == "chunk"]
    late = [step.name for step in steps[users[-1] :] if step.writes == "pages" and step.adds] if users else []
    if late:
        raise UserError(f"{file}: {late[0]} reads pages after chunk, which would not see them; move it before chunk")


def _step(text: str, file: Path) -> Step:
    try:
        calls = parse_stage(text)
        if len(calls) != 1:
            raise UserError(f"{text!r} is more than one step: write each step in its own quotes")
        made = stage_of(calls[0], "build")
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    assert isinstance(made, Step)
    return made
