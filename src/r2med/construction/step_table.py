"""The steps of builds by name. A new step is one class and one line here, or a plugin's stage of the kind "build"."""

from __future__ import annotations

from collections.abc import Mapping

from r2med.foundation.core.errors import unknown
from r2med.foundation.core.spec import Call
from r2med.foundation.core.stages import Stage, loaded_class, plugged

KIND = "build"

STEPS: Mapping[str, str] = {
    "read-stackexchange": "r2med.construction.sources.stackexchange:ReadStackExchange",
    "read-exam": "r2med.construction.sources.exam_questions:ReadExam",
    "read-cases": "r2med.construction.sources.case_reports:ReadCases",
    "read-case-pages": "r2med.construction.sources.case_reports:ReadCasePages",
    "read-table": "r2med.construction.sources.question_table:ReadTable",
    "deidentify": "r2med.construction.steps.deidentifying:DeidentifyQuestions",
    "translate": "r2med.construction.steps.translating:Translate",
    "label-kind": "r2med.construction.steps.question_labels:LabelKind",
    "check-rules": "r2med.construction.steps.question_labels:CheckRules",
    "drop-easy": "r2med.construction.steps.easy_questions:DropEasy",
    "open-question": "r2med.construction.steps.rewriting:OpenQuestion",
    "label-body-system": "r2med.construction.steps.question_labels:LabelBodySystem",
    "hide-diagnosis": "r2med.construction.steps.rewriting:HideDiagnosis",
    "group-diagnoses": "r2med.construction.steps.grouping:GroupDiagnoses",
    "check-leaks": "r2med.construction.steps.leaks:CheckLeaks",
    "reason": "r2med.construction.steps.rewriting:Reason",
    "read-web": "r2med.construction.sources.web_pages:ReadWeb",
    "read-wikipedia": "r2med.construction.sources.page_readers:ReadRows",
    "read-textbook": "r2med.construction.sources.page_readers:ReadRows",
    "read-jats": "r2med.construction.sources.page_readers:ReadJats",
    "read-pubmed": "r2med.construction.sources.page_readers:ReadPubMed",
    "read-text": "r2med.construction.sources.page_readers:ReadText",
    "deidentify-pages": "r2med.construction.steps.deidentifying:DeidentifyPages",
    "translate-pages": "r2med.construction.steps.translating:TranslatePages",
    "chunk": "r2med.construction.steps.chunking:ChunkPages",
    "drop-duplicates": "r2med.construction.steps.duplicates:DropDuplicates",
    "mine": "r2med.construction.steps.mining:Mine",
    "plant-controls": "r2med.construction.steps.controls:PlantControls",
    "judge": "r2med.construction.steps.judging:Judge",
}
"""Name -> "module:Class", imported when it is first used."""


def step_names() -> list[str]:
    """Return the names of all steps."""
    return [*STEPS, *(name for name in plugged(KIND) if name not in STEPS)]


def step_class(name: str) -> type[Stage]:
    """Return the class that declares a step. Raises UserError if there is none."""
    if name in STEPS:
        return loaded_class(STEPS[name])
    if name in plugged(KIND):
        return plugged(KIND)[name]
    raise unknown("step of a build", name, step_names())


def parse_step(call: Call) -> Stage:
    """Return the step of a call."""
    return step_class(call.name).parse(call)
