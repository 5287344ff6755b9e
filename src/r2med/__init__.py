"""r2med: how well does a retrieval system reason about medicine?

What `__all__` names is public (docs/api.md); everything else may change without notice.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily
from r2med.foundation.core.version import __version__

if TYPE_CHECKING:
    from r2med.analysis.analysis import Analysed, analyse
    from r2med.assessment.answers.answering import answer
    from r2med.assessment.audit.audit_findings import Audit
    from r2med.assessment.audit.checks import audit
    from r2med.assessment.rubrics.rubric import Rubric
    from r2med.construction.benchmark import Built, build
    from r2med.construction.example_plans import write_example
    from r2med.construction.items import Candidate, Judgement, PageChunk, Rejected, SourcePage, SourceQuestion
    from r2med.construction.labels import Labelling, labels, overrating
    from r2med.construction.step import Step, StepWork, Streams
    from r2med.construction.steps.asking import AskingStep
    from r2med.data import Corpus, Dataset, Qrels, Query, load, names
    from r2med.data.example_data import example_data
    from r2med.data.given_data import with_overlays
    from r2med.data.overlays import Overlay, OverlayLabel
    from r2med.data.runs import Run
    from r2med.data.tables.table_import import import_tables
    from r2med.evaluation.advice.advice import Advice
    from r2med.evaluation.advice.ladder import advise
    from r2med.evaluation.comparison.comparing import compare
    from r2med.evaluation.comparison.comparison import Comparison
    from r2med.evaluation.comparison.report import Report, report
    from r2med.evaluation.measure import Measure, Scores
    from r2med.evaluation.measure.agreement import cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha
    from r2med.evaluation.measure.score_inputs import score
    from r2med.evaluation.records.answer_record import AnswerRecord
    from r2med.evaluation.records.lock_file import Lock
    from r2med.evaluation.records.record import Record
    from r2med.evaluation.running.batch import run
    from r2med.evaluation.running.doctor import Diagnosis, doctor
    from r2med.evaluation.running.evaluation import evaluate
    from r2med.evaluation.running.locking import lock
    from r2med.evaluation.running.results import Results
    from r2med.evaluation.running.run_export import export_runs
    from r2med.evaluation.running.story import Story, explain
    from r2med.evaluation.running.text_generation import GeneratedTexts, generate
    from r2med.foundation.core.cost import Cost
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.core.plan import Plan
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.foundation.runtime.stages import Bound, Stage, argument, depth_field, derived
    from r2med.foundation.text.identifiers import identifiers
    from r2med.foundation.text.sentences import sentences
    from r2med.models.ask.answers import LLMAnswer
    from r2med.models.encoders.encoder import Encoder
    from r2med.publication.bridges.data_export import export
    from r2med.publication.bridges.langchain import LangChainRetriever
    from r2med.publication.bridges.mteb_predictions import import_predictions
    from r2med.publication.bridges.mteb_results import export_results
    from r2med.publication.bridges.pyterrier import PyTerrierRetriever
    from r2med.publication.leaderboard.reproduction import Reproduction, reproduce
    from r2med.publication.leaderboard.submission import Entry, submit
    from r2med.publication.leaderboard.verification import Checked, verify
    from r2med.publication.packs.pack_manifest import PackManifest
    from r2med.publication.packs.packing import pack
    from r2med.publication.packs.unpacking import Unpacked, unpack
    from r2med.publication.site.site import board
    from r2med.server.serving import review, serve, serve_board
    from r2med.systems.expand.expansion import Expander, Expansion
    from r2med.systems.rerank.reranking import Reranked, Reranker, reranked
    from r2med.systems.retrieve.retriever import Retriever, Searched, Searcher
    from r2med.systems.system import System
    from r2med.systems.system.question import Answer, Passage, search

__all__ = [
    "Advice",
    "Analysed",
    "Answer",
    "AnswerRecord",
    "AskingStep",
    "Audit",
    "Bound",
    "Built",
    "Candidate",
    "Checked",
    "Comparison",
    "Corpus",
    "Cost",
    "Dataset",
    "Diagnosis",
    "Encoder",
    "Entry",
    "Expander",
    "Expansion",
    "GeneratedTexts",
    "Judgement",
    "LLMAnswer",
    "Labelling",
    "LangChainRetriever",
    "Lock",
    "Measure",
    "Overlay",
    "OverlayLabel",
    "PackManifest",
    "PageChunk",
    "Passage",
    "Plan",
    "PyTerrierRetriever",
    "Qrels",
    "Query",
    "Record",
    "Rejected",
    "Report",
    "Reproduction",
    "Reranked",
    "Reranker",
    "Results",
    "Retriever",
    "Rubric",
    "Run",
    "Runtime",
    "Scores",
    "Searched",
    "Searcher",
    "Setup",
    "SourcePage",
    "SourceQuestion",
    "Stage",
    "Step",
    "StepWork",
    "Story",
    "Streams",
    "System",
    "Unpacked",
    "UserError",
    "__version__",
    "advise",
    "analyse",
    "answer",
    "argument",
    "audit",
    "board",
    "build",
    "cohen_kappa",
    "compare",
    "depth_field",
    "derived",
    "doctor",
    "evaluate",
    "example_data",
    "explain",
    "export",
    "export_results",
    "export_runs",
    "fleiss_kappa",
    "generate",
    "gwet_ac1",
    "identifiers",
    "import_predictions",
    "import_tables",
    "krippendorff_alpha",
    "labels",
    "load",
    "lock",
    "names",
    "overrating",
    "pack",
    "report",
    "reproduce",
    "reranked",
    "review",
    "run",
    "score",
    "search",
    "sentences",
    "serve",
    "serve_board",
    "submit",
    "unpack",
    "verify",
    "with_overlays",
    "write_example",
]

if os.environ.get("R2MED_OFFLINE"):
    from r2med.foundation.net.offline import guard, is_offline

    if is_offline():  # R2MED_OFFLINE=0 means online
        guard()  # before anything is imported that could connect

__getattr__ = lazily(__name__)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
