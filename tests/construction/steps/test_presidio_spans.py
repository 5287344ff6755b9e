from dataclasses import dataclass

import pytest

from r2med.construction.steps import presidio_spans
from r2med.construction.steps.presidio_spans import PresidioSpans
from r2med.foundation.core.errors import UserError
from support.builds import built


@dataclass
class Finding:
    entity_type: str
    start: int
    end: int


class Analyzer:
    """Finds three words, with the interface of presidio's AnalyzerEngine."""

    def __init__(self):
        self.texts = []

    def analyze(self, text, language, entities, score_threshold):
        assert language == "en" and "DATE_TIME" not in entities and score_threshold == presidio_spans.MIN_SCORE
        self.texts.append(text)
        words = {"Qwertz": "PERSON", "Crohn": "PERSON", "Utopia": "LOCATION"}
        return [
            Finding(kind, text.index(word), text.index(word) + len(word))
            for word, kind in words.items()
            if word in text
        ]


def test_findings_have_our_kinds_and_eponyms_stay():
    text = "Qwertz of Utopia has Crohn disease."
    spans = PresidioSpans(Analyzer()).spans(text)
    assert [(text[span.start : span.end], span.kind) for span in spans] == [("Qwertz", "NAME"), ("Utopia", "ADDRESS")]
    assert not PresidioSpans(Analyzer()).spans("Morbus Crohn, maladie de Crohn")


def test_a_long_text_is_analysed_in_pieces(monkeypatch):
    monkeypatch.setattr(presidio_spans, "PIECE_CHARACTERS", 20)
    analyzer = Analyzer()
    text = "words and more words\n" * 3 + "Qwertz left."
    [span] = PresidioSpans(analyzer).spans(text)
    assert text[span.start : span.end] == "Qwertz" and "".join(analyzer.texts) == text


def test_the_library_adds_to_the_rules(tmp_path, monkeypatch):
    monkeypatch.setattr(PresidioSpans, "open", classmethod(lambda cls, language: cls(Analyzer())))
    table = "id,question,answer\nq1,Dr. Weber saw Qwertz on 3 May 2021.,Flu\n"
    made = built(tmp_path, ["read-table(q.csv)", "deidentify(library=presidio)"], {"q.csv": table})
    assert next(made.items(2)).text == "Dr. Weber saw [NAME-1] on [DATE-1]."
    assert made.status()[1].facts["personal data"]["kinds"] == {"NAME": 1, "DATE": 1}


def test_a_library_that_is_not_installed_is_an_error_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "presidio_analyzer", None)
    with pytest.raises(UserError, match="pip install presidio-analyzer"):
        PresidioSpans.open()
