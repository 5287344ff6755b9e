"""r2med: how well does a retrieval system reason about medicine?

What `__all__` names is public (docs/api.md); everything else may change without notice.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from r2med.core.lazy import lazily
from r2med.core.version import __version__

if TYPE_CHECKING:
    from r2med.advice.advice import Advice
    from r2med.advice.ladder import advise
    from r2med.analysis.analysis import Analysed, analyse
    from r2med.answers.answering import answer
    from r2med.bridges.data_export import export
    from r2med.bridges.langchain import LangChainRetriever
    from r2med.bridges.mteb_predictions import import_predictions
    from r2med.bridges.mteb_results import export_results
    from r2med.bridges.pyterrier import PyTerrierRetriever
    from r2med.comparison.comparing import compare
    from r2med.comparison.comparison import Comparison
    from r2med.comparison.report import Report, report
    from r2med.construction.benchmark import Built, build
    from r2med.construction.example_plans import write_example
    from r2med.construction.items import Judgement
    from r2med.construction.review.labels import Labelling, labels, overrating
    from r2med.core.cost import Cost
    from r2med.core.errors import UserError
    from r2med.core.stage_plan import StagePlan
    from r2med.core.stages import Bound, Stage, argument, depth_field, derived
    from r2med.data import Corpus, Dataset, Qrels, Query, load, names
    from r2med.data.example_data import example_data
    from r2med.data.given_data import with_overlays
    from r2med.data.overlays import Overlay, OverlayLabel
    from r2med.data.table_import import import_tables
    from r2med.encoders.encoder import Encoder
    from r2med.evaluation.batch import run
    from r2med.evaluation.doctor import Diagnosis, doctor
    from r2med.evaluation.evaluation import evaluate
    from r2med.evaluation.locking import lock
    from r2med.evaluation.results import Results
    from r2med.evaluation.run_export import export_runs
    from r2med.evaluation.story import Story, explain
    from r2med.evaluation.text_generation import GeneratedTexts, generate
    from r2med.expand.expansion import Expander, Expansion
    from r2med.judgements.audit import audit
    from r2med.judgements.audit_findings import Audit
    from r2med.leaderboard.reproduction import Reproduction, reproduce
    from r2med.leaderboard.submission import Entry, submit
    from r2med.leaderboard.verification import Checked, verify
    from r2med.measure import Measure, Scores, score
    from r2med.measure.agreement import cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha
    from r2med.packs.pack_manifest import PackManifest
    from r2med.packs.packing import pack
    from r2med.packs.unpacking import Unpacked, unpack
    from r2med.records.answer_record import AnswerRecord
    from r2med.records.lock_file import Lock
    from r2med.records.record import Record
    from r2med.rerank.reranking import Reranked, Reranker, reranked
    from r2med.retrieve import Run
    from r2med.retrieve.retriever import Retriever, Searched, Searcher
    from r2med.runtime.runtime import Runtime
    from r2med.runtime.setup import Setup
    from r2med.server.serving import review, serve, serve_board
    from r2med.site.site import board
    from r2med.system import System
    from r2med.system.question import Answer, Passage, search
    from r2med.text.identifiers import identifiers
    from r2med.text.sentences import sentences

__all__ = [
    "Advice",
    "Analysed",
    "Answer",
    "AnswerRecord",
    "Audit",
    "Bound",
    "Built",
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
    "Labelling",
    "LangChainRetriever",
    "Lock",
    "Measure",
    "Overlay",
    "OverlayLabel",
    "PackManifest",
    "Passage",
    "PyTerrierRetriever",
    "Qrels",
    "Query",
    "Record",
    "Report",
    "Reproduction",
    "Reranked",
    "Reranker",
    "Results",
    "Retriever",
    "Run",
    "Runtime",
    "Scores",
    "Searched",
    "Searcher",
    "Setup",
    "Stage",
    "StagePlan",
    "Story",
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

_MODULES = {
    "r2med.advice.advice": ("Advice",),
    "r2med.advice.ladder": ("advise",),
    "r2med.analysis.analysis": (
        "Analysed",
        "analyse",
    ),
    "r2med.answers.answering": ("answer",),
    "r2med.bridges.data_export": ("export",),
    "r2med.bridges.langchain": ("LangChainRetriever",),
    "r2med.bridges.mteb_predictions": ("import_predictions",),
    "r2med.bridges.mteb_results": ("export_results",),
    "r2med.bridges.pyterrier": ("PyTerrierRetriever",),
    "r2med.comparison.comparing": ("compare",),
    "r2med.comparison.comparison": ("Comparison",),
    "r2med.comparison.report": (
        "Report",
        "report",
    ),
    "r2med.construction.benchmark": (
        "Built",
        "build",
    ),
    "r2med.construction.example_plans": ("write_example",),
    "r2med.construction.items": ("Judgement",),
    "r2med.construction.review.labels": (
        "Labelling",
        "labels",
        "overrating",
    ),
    "r2med.core.cost": ("Cost",),
    "r2med.core.errors": ("UserError",),
    "r2med.core.stage_plan": ("StagePlan",),
    "r2med.core.stages": (
        "Bound",
        "Stage",
        "argument",
        "depth_field",
        "derived",
    ),
    "r2med.data": (
        "Corpus",
        "Dataset",
        "Qrels",
        "Query",
        "load",
        "names",
    ),
    "r2med.data.example_data": ("example_data",),
    "r2med.data.given_data": ("with_overlays",),
    "r2med.data.overlays": ("Overlay", "OverlayLabel"),
    "r2med.data.table_import": ("import_tables",),
    "r2med.encoders.encoder": ("Encoder",),
    "r2med.evaluation.batch": ("run",),
    "r2med.evaluation.doctor": (
        "Diagnosis",
        "doctor",
    ),
    "r2med.evaluation.evaluation": ("evaluate",),
    "r2med.evaluation.locking": ("lock",),
    "r2med.evaluation.results": ("Results",),
    "r2med.evaluation.run_export": ("export_runs",),
    "r2med.evaluation.story": ("Story", "explain"),
    "r2med.evaluation.text_generation": ("GeneratedTexts", "generate"),
    "r2med.expand.expansion": (
        "Expander",
        "Expansion",
    ),
    "r2med.leaderboard.reproduction": (
        "Reproduction",
        "reproduce",
    ),
    "r2med.leaderboard.submission": (
        "Entry",
        "submit",
    ),
    "r2med.leaderboard.verification": (
        "Checked",
        "verify",
    ),
    "r2med.judgements.audit": ("audit",),
    "r2med.judgements.audit_findings": ("Audit",),
    "r2med.measure": (
        "Measure",
        "Scores",
        "score",
    ),
    "r2med.measure.agreement": (
        "cohen_kappa",
        "fleiss_kappa",
        "gwet_ac1",
        "krippendorff_alpha",
    ),
    "r2med.packs.pack_manifest": ("PackManifest",),
    "r2med.packs.packing": ("pack",),
    "r2med.packs.unpacking": ("Unpacked", "unpack"),
    "r2med.records.answer_record": ("AnswerRecord",),
    "r2med.records.lock_file": ("Lock",),
    "r2med.records.record": ("Record",),
    "r2med.rerank.reranking": (
        "Reranked",
        "Reranker",
        "reranked",
    ),
    "r2med.retrieve": ("Run",),
    "r2med.retrieve.retriever": (
        "Retriever",
        "Searched",
        "Searcher",
    ),
    "r2med.runtime.runtime": ("Runtime",),
    "r2med.runtime.setup": ("Setup",),
    "r2med.server.serving": ("review", "serve", "serve_board"),
    "r2med.site.site": ("board",),
    "r2med.system": ("System",),
    "r2med.system.question": (
        "Answer",
        "Passage",
        "search",
    ),
    "r2med.text.identifiers": ("identifiers",),
    "r2med.text.sentences": ("sentences",),
}

if os.environ.get("R2MED_OFFLINE"):
    from r2med.net.offline import guard, is_offline

    if is_offline():  # R2MED_OFFLINE=0 means online
        guard()  # before anything is imported that could connect

__getattr__ = lazily(__name__, {name: module for module, names in _MODULES.items() for name in names})


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
