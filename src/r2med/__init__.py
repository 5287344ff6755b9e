"""r2med: how well does a retrieval system reason about medicine?

This table is the public API, by task (docs/api.md). A name is imported when it is first used. `r2med.values` has the
classes of what functions return, `r2med.extend` what stages, models and build steps of your own need, `r2med.agreement`
how far people or judges agree. Everything else may change without notice.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily
from r2med.foundation.core.version import __version__ as __version__

# Datasets
if TYPE_CHECKING:
    from r2med.data import Corpus as Corpus
    from r2med.data import Dataset as Dataset
    from r2med.data import Qrels as Qrels
    from r2med.data import Query as Query
    from r2med.data import load as load
    from r2med.data import names as names
    from r2med.public.data_functions import check_data as check_data
    from r2med.public.data_functions import example_data as example_data
    from r2med.public.data_functions import export_data as export_data
    from r2med.public.data_functions import fetch_data as fetch_data
    from r2med.public.data_functions import import_data as import_data
    from r2med.public.data_functions import training_data as training_data

# Evaluate systems
if TYPE_CHECKING:
    from r2med.data.runs import Run as Run
    from r2med.evaluation.measure import Measure as Measure
    from r2med.evaluation.measure import Scores as Scores
    from r2med.evaluation.records.lock_file import Lock as Lock
    from r2med.evaluation.records.record import Record as Record
    from r2med.evaluation.running.evaluation import evaluate as evaluate
    from r2med.evaluation.running.results import Results as Results
    from r2med.foundation.core.cost import Cost as Cost
    from r2med.public.call_plan import plan as plan
    from r2med.public.compare_functions import score as score
    from r2med.public.run_functions import generate as generate
    from r2med.public.run_functions import lock as lock
    from r2med.public.run_functions import run as run
    from r2med.systems.system import System as System

# Compare and explain
if TYPE_CHECKING:
    from r2med.evaluation.comparison.comparison import Comparison as Comparison
    from r2med.public.answer_functions import analyse as analyse
    from r2med.public.compare_functions import compare as compare
    from r2med.public.look_functions import why as why

# Search, serve and show
if TYPE_CHECKING:
    from r2med.public.label_functions import advise as advise
    from r2med.public.look_functions import board as board
    from r2med.public.look_functions import search as search
    from r2med.public.look_functions import serve as serve

# Labels and answers
if TYPE_CHECKING:
    from r2med.data.loading import with_overlays as with_overlays
    from r2med.data.overlays import Overlay as Overlay
    from r2med.data.overlays import OverlayLabel as OverlayLabel
    from r2med.public.answer_functions import answer as answer
    from r2med.public.label_functions import audit as audit
    from r2med.public.label_functions import judge as judge
    from r2med.public.label_functions import nuggets as nuggets

# Build a benchmark
if TYPE_CHECKING:
    from r2med.public.build_functions import example_build as example_build
    from r2med.public.build_functions import run_build as run_build
    from r2med.public.build_functions import show_build as show_build
    from r2med.public.review_functions import export_review as export_review
    from r2med.public.review_functions import import_review as import_review
    from r2med.public.review_functions import serve_review as serve_review
    from r2med.public.review_functions import show_review as show_review

# Leaderboard and sharing
if TYPE_CHECKING:
    from r2med.public.answer_functions import reproduce as reproduce
    from r2med.public.share_functions import pack as pack
    from r2med.public.share_functions import submit as submit
    from r2med.public.share_functions import unpack as unpack
    from r2med.public.share_functions import verify as verify

# Other libraries
if TYPE_CHECKING:
    from r2med.public.record_functions import export_records as export_records
    from r2med.public.record_functions import import_records as import_records
    from r2med.publication.bridges.inspect_tasks import inspect_task as inspect_task
    from r2med.publication.bridges.langchain import LangChainRetriever as LangChainRetriever
    from r2med.publication.bridges.pyterrier import PyTerrierRetriever as PyTerrierRetriever

# Names and their meaning
if TYPE_CHECKING:
    from r2med.public.catalogue_functions import list_ as list_
    from r2med.public.catalogue_functions import show as show

# Settings and the machine
if TYPE_CHECKING:
    from r2med.foundation.core.errors import UserError as UserError
    from r2med.foundation.runtime.runtime import Runtime as Runtime
    from r2med.foundation.runtime.setup import Setup as Setup
    from r2med.public.machine_functions import clear_cache as clear_cache
    from r2med.public.machine_functions import doctor as doctor
    from r2med.public.machine_functions import list_cache as list_cache

if TYPE_CHECKING:
    from r2med import agreement as agreement
    from r2med import extend as extend
    from r2med import values as values

if os.environ.get("R2MED_OFFLINE"):
    from r2med.foundation.net.offline import guard, is_offline

    if is_offline():  # R2MED_OFFLINE=0 means online
        guard()  # before anything is imported that could connect

__getattr__, __dir__ = lazily(__name__)
