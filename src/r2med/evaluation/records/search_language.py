"""The language that recorded systems search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from r2med.evaluation.records.record import declared_stages
from r2med.foundation.text.analysers import installed_language
from r2med.foundation.text.search_languages import ENGLISH


def recorded_language(settings: Iterable[Mapping[str, Any]]) -> str:
    """Return the language of the BM25s in the settings of some records, so that pages mark words as they matched.

    English if no BM25 names another language, or if that language cannot be analysed here.
    """
    stages = (stage for each in settings for stage in declared_stages(each) if stage["stage"] == "bm25")
    return installed_language(next((str(stage["language"]) for stage in stages if "language" in stage), ENGLISH))
