"""The classes of what public functions return, for annotations of your own and for files that were stored.

This table is part of the public API (docs/api.md). A name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily

# Evaluate and explain
if TYPE_CHECKING:
    from r2med.analysis.analysis import Analysis as Analysis
    from r2med.evaluation.advice.advice import Advice as Advice
    from r2med.evaluation.running.story import Story as Story
    from r2med.evaluation.running.text_generation import GeneratedTexts as GeneratedTexts

# Search
if TYPE_CHECKING:
    from r2med.systems.system.question import Passage as Passage
    from r2med.systems.system.question import SearchResult as SearchResult

# Labels and answers
if TYPE_CHECKING:
    from r2med.assessment.answers.answering import AnsweredSystems as AnsweredSystems
    from r2med.assessment.answers.nugget_making import MadeNuggets as MadeNuggets
    from r2med.assessment.audit.audit_findings import Audit as Audit
    from r2med.assessment.judgements.committee import JudgedPools as JudgedPools

# Build and share
if TYPE_CHECKING:
    from r2med.construction.benchmark import Build as Build
    from r2med.publication.leaderboard.reproduction import Reproduction as Reproduction
    from r2med.publication.leaderboard.submission import Entry as Entry
    from r2med.publication.leaderboard.verification import Verification as Verification
    from r2med.publication.packs.pack_file import PackManifest as PackManifest
    from r2med.publication.packs.unpacking import Unpacked as Unpacked

# Names and the machine
if TYPE_CHECKING:
    from r2med.evaluation.running.doctor import Diagnosis as Diagnosis
    from r2med.public.listing import Listing as Listing

__getattr__, __dir__ = lazily(__name__)
