"""What stages, models and build steps of your own need.

This table is part of the public API (docs/api.md). A name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily

# Stages
if TYPE_CHECKING:
    from r2med.foundation.core.needs import Needs as Needs
    from r2med.foundation.runtime.stages import Stage as Stage
    from r2med.foundation.runtime.stages import argument as argument
    from r2med.foundation.runtime.stages import depth_field as depth_field
    from r2med.foundation.runtime.stages import derived as derived
    from r2med.systems.expand.expansion import Expansion as Expansion
    from r2med.systems.rerank.reranking import Reranked as Reranked
    from r2med.systems.rerank.reranking import reranked as reranked
    from r2med.systems.retrieve.retriever import Searched as Searched
    from r2med.systems.retrieve.retriever import SearchQuery as SearchQuery

# Models
if TYPE_CHECKING:
    from r2med.models.encoders.encoder import Encoder as Encoder

# Build steps
if TYPE_CHECKING:
    from r2med.assessment.rubrics.rubric import Rubric as Rubric
    from r2med.construction.items import Candidate as Candidate
    from r2med.construction.items import Judgement as Judgement
    from r2med.construction.items import PageChunk as PageChunk
    from r2med.construction.items import Rejected as Rejected
    from r2med.construction.items import SourcePage as SourcePage
    from r2med.construction.items import SourceQuestion as SourceQuestion
    from r2med.construction.labels import Labelling as Labelling
    from r2med.construction.labels import labels as labels
    from r2med.construction.labels import overrating as overrating
    from r2med.construction.step import Step as Step
    from r2med.construction.step import StepWork as StepWork
    from r2med.construction.step import Streams as Streams
    from r2med.construction.steps.asking import AskingStep as AskingStep
    from r2med.foundation.text.sentences import sentences as sentences
    from r2med.models.ask.answers import LLMAnswer as LLMAnswer

__getattr__, __dir__ = lazily(__name__)
