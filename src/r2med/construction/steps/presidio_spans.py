"""Find personal data with presidio-analyzer, if it is installed. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from r2med.construction.steps.person_names import is_eponym
from r2med.construction.steps.personal_data import PersonalKind, PersonalSpan
from r2med.construction.steps.text_pieces import piece_spans
from r2med.foundation.core.errors import UserError

ENTITIES: Mapping[str, PersonalKind] = {
    "PERSON": "NAME",
    "LOCATION": "ADDRESS",
    "PHONE_NUMBER": "PHONE",
    **dict.fromkeys(("IP_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "MEDICAL_LICENSE", "CRYPTO"), "ID"),
    **dict.fromkeys(("US_SSN", "US_PASSPORT", "US_DRIVER_LICENSE", "US_BANK_NUMBER", "US_ITIN", "UK_NHS"), "ID"),
}
"""Presidio's entities and our kinds. DATE_TIME is not used, because it includes ages, durations and doses a day. Mail
and links are left to our rules, because presidio would download a list of domains for them."""
MIN_SCORE = 0.5
"""Minimum score of a finding. Presidio gives less to numbers that only have the length of an identifier."""
MODELS = ("en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm")
"""Models of spaCy that are used, the first that is installed."""
PIECE_CHARACTERS = 100_000
"""Characters that are analysed together. spaCy refuses more than a million."""


class Analyzer(Protocol):
    """The part of presidio's AnalyzerEngine that is used."""

    def analyze(self, text: str, language: str, entities: list[str], score_threshold: float) -> Sequence[Any]:
        """Return findings with entity_type, start and end."""


@dataclass(frozen=True)
class PresidioSpans:
    """Personal data that presidio finds in English text."""

    analyzer: Analyzer

    @classmethod
    def open(cls) -> PresidioSpans:
        """Load presidio with an installed model. Raises UserError if something is not installed."""
        try:
            import spacy
            from presidio_analyzer import AnalyzerEngine
            from presidio_analyzer.nlp_engine import NlpEngineProvider
        except ImportError:
            raise UserError("library=presidio needs presidio-analyzer: pip install presidio-analyzer") from None
        model = next((name for name in MODELS if spacy.util.is_package(name)), None)
        if model is None:  # otherwise presidio would download one
            raise UserError("library=presidio needs a model of spaCy: python -m spacy download en_core_web_lg")
        models = [{"lang_code": "en", "model_name": model}]
        provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models})
        return cls(AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"]))

    def spans(self, text: str) -> list[PersonalSpan]:
        """Return what presidio finds, without medical eponyms. Spans may overlap."""
        return [
            PersonalSpan(start + each.start, start + each.end, ENTITIES[each.entity_type], "presidio")
            for start, end in piece_spans(text, PIECE_CHARACTERS)
            for each in self.analyzer.analyze(
                text=text[start:end], language="en", entities=list(ENTITIES), score_threshold=MIN_SCORE
            )
            if not (each.entity_type == "PERSON" and is_eponym(text, start + each.start, start + each.end))
        ]


def presidio_version() -> str:
    """Return the installed version of presidio-analyzer; empty if it is not installed."""
    try:
        return version("presidio-analyzer")
    except PackageNotFoundError:
        return ""
