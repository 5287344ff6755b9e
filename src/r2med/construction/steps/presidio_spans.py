"""Find names, places and numbers of people with presidio-analyzer, if it is installed. Nothing is downloaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from r2med.construction.steps.text_pieces import piece_spans
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.personal_data import PersonalKind, PersonalSpan

ENTITIES: Mapping[str, PersonalKind] = {
    "PERSON": "NAME",
    "LOCATION": "ADDRESS",
    "PHONE_NUMBER": "PHONE",
    **dict.fromkeys(("CREDIT_CARD", "IBAN_CODE", "MEDICAL_LICENSE", "US_SSN", "US_PASSPORT", "UK_NHS"), "ID"),
}
"""Presidio's entities and our kinds. DATE_TIME is not used, because it includes ages, durations and doses a day. Mail
is left to our rules, because presidio would download a list of domains for it."""
MIN_SCORE = 0.5
"""Minimum score of a finding. Presidio gives less to numbers that only have the length of an identifier."""
MODELS: Mapping[str, Sequence[str]] = {
    "English": ("en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm"),
    "German": ("de_core_news_lg", "de_core_news_md", "de_core_news_sm"),
    "Spanish": ("es_core_news_lg", "es_core_news_md", "es_core_news_sm"),
    "French": ("fr_core_news_lg", "fr_core_news_md", "fr_core_news_sm"),
    "Chinese": ("zh_core_web_trf", "zh_core_web_lg", "zh_core_web_md", "zh_core_web_sm"),
}
"""Language -> models of spaCy. The first that is installed is used."""
PIECE_CHARACTERS = 100_000
"""Characters that are analysed together. spaCy refuses more than a million."""
_TERMS = (
    "diseases?|syndromes?|signs?|tests?|scores?|stages?|criteria|classification|palsy|lymphoma|tumou?r|reflex|"
    "man(?:eu|oeu)ver|fracture|Krankheit|Zeichen"
)
_EPONYM_END = re.compile(rf"(?:['’]s|s['’])?[\s-](?:{_TERMS})\b", re.IGNORECASE)
_EPONYM_START = re.compile(
    r"\b(?:morbus|(?:disease|syndrome|maladie|signe|enfermedad|síndrome|signo) (?:of|de)) $", re.IGNORECASE
)
"""Words after and before a name that is part of a medical term, such as Crohn's disease."""


class Analyzer(Protocol):
    """The part of presidio's AnalyzerEngine that is used."""

    def analyze(self, text: str, language: str, entities: list[str], score_threshold: float) -> Sequence[Any]:
        """Return findings with entity_type, start and end."""


@dataclass(frozen=True)
class PresidioSpans:
    """Personal data that presidio finds in text of one language."""

    analyzer: Analyzer
    code: str = "en"
    """ISO code of the language."""
    entities: Sequence[str] = tuple(ENTITIES)
    """Entities that presidio knows in this language. It would log a warning for each text and each other one."""

    @classmethod
    def open(cls, language: str = "English") -> PresidioSpans:
        """Load presidio with an installed model. Raises UserError if something is not installed."""
        try:
            import spacy
            from presidio_analyzer import AnalyzerEngine
            from presidio_analyzer.nlp_engine import NlpEngineProvider
        except ImportError:
            raise UserError("library=presidio needs presidio-analyzer: pip install presidio-analyzer") from None
        model = next((name for name in MODELS[language] if spacy.util.is_package(name)), None)
        if model is None:  # otherwise presidio would download one
            command = f"python -m spacy download {MODELS[language][1]}"
            raise UserError(f"library=presidio needs a model of spaCy for {language}: {command}")
        code = model[:2]
        models = [{"lang_code": code, "model_name": model}]
        provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models})
        engine = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=[code])
        return cls(engine, code, [each for each in engine.get_supported_entities(code) if each in ENTITIES])

    def spans(self, text: str) -> list[PersonalSpan]:
        """Return what presidio finds, without names in medical terms. Spans may overlap."""
        return [
            PersonalSpan(start + each.start, start + each.end, ENTITIES[each.entity_type], "presidio")
            for start, end in piece_spans(text, PIECE_CHARACTERS)
            for each in self.analyzer.analyze(
                text=text[start:end], language=self.code, entities=list(self.entities), score_threshold=MIN_SCORE
            )
            if not (each.entity_type == "PERSON" and _is_eponym(text, start + each.start, start + each.end))
        ]


def _is_eponym(text: str, start: int, end: int) -> bool:
    return bool(_EPONYM_END.match(text, end) or _EPONYM_START.search(text, max(0, start - 20), start))


def presidio_version() -> str:
    """Return the installed version of presidio-analyzer; empty if it is not installed."""
    try:
        return version("presidio-analyzer")
    except PackageNotFoundError:
        return ""
