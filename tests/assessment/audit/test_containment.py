"""Texts of a dataset in other data: equal, nearly equal, inside another text; and in every kind of file."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import r2med
from r2med.assessment.audit.containment import OtherText, known_texts, shared_texts
from r2med.assessment.audit.overlaps import overlap_finding
from support.datasets import write_jsonl, write_parquet
from support.facts import error_states, states

CHANCE = random.Random(9)
WORDS = [f"{a}{b}{c}{d}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst" for d in "aeiou"]


def text(count: int = 60) -> str:
    return " ".join(CHANCE.choices(WORDS, k=count))


QUESTION, SHORT, PASSAGE, ANSWER = text(25), text(6), text(80), text(15)
DATASET = r2med.Dataset.of(
    [r2med.Query("q", QUESTION, ANSWER), r2med.Query("s", SHORT, "gout")],
    {"p": PASSAGE, "n": text(80), "x": text(80)},
    {"q": {"p": 1, "x": 0}, "s": {"n": 1}},
    "mine",
)


def found(*others: str) -> list[tuple[str, str, str]]:
    shared = shared_texts(known_texts(DATASET), [OtherText(str(place), each) for place, each in enumerate(others)])
    return [(each.known.kind, each.known.id, each.kind) for each in shared.found]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (QUESTION, ("question", "q", "equal")),
        (QUESTION.upper().replace(" ", ", "), ("question", "q", "equal")),
        (f"{QUESTION} now", ("question", "q", "near")),
        (f"Read this and answer: {QUESTION} {text(100)}", ("question", "q", "run")),
        (SHORT, ("question", "s", "equal")),
        (f"{SHORT} now", ("question", "s", "near")),  # 5 of 6 pairs of words
        (QUESTION.replace(" ", "\u200b \u200b").replace("a", "a\u00ad"), ("question", "q", "equal")),
        (QUESTION.replace(" ", "\n"), ("question", "q", "equal")),
        (f"{QUESTION}\u3002", ("question", "q", "equal")),
        (QUESTION.replace(" ", "\u2010"), ("question", "q", "equal")),
        (QUESTION.replace(" ", "&nbsp;"), ("question", "q", "equal")),
        (" ".join(f"<b class='x'>{word}</b>" for word in PASSAGE.split()), ("passage", "p", "equal")),
        (PASSAGE, ("passage", "p", "equal")),
        (" ".join([*PASSAGE.split()[:40], "other", *PASSAGE.split()[41:]]), ("passage", "p", "near")),
        (f"{text(200)} {' '.join(PASSAGE.split()[20:33])} {text(200)}", ("passage", "p", "run")),
        (f"{text(50)} {ANSWER}", ("answer", "q", "run")),
    ],
)
def test_a_text_that_other_data_hold_is_found(other: str, expected: tuple[str, str, str]) -> None:
    assert found(text(), other, text()) == [expected]


@pytest.mark.parametrize(
    "other",
    [
        text(100),
        f"{text(50)} {' '.join(PASSAGE.split()[20:32])} {text(50)}",  # twelve words
        "gout",
        " ".join(sorted(PASSAGE.split())),
        DATASET.corpus.text(2),
    ],
    ids=("other words", "twelve words", "short answer", "other order", "irrelevant document"),
)
def test_what_shares_no_run_and_few_words_is_no_overlap(other: str) -> None:
    assert found(other) == []


def test_the_closest_copy_of_a_text_counts_and_the_longest_run_is_shown() -> None:
    others = [OtherText("a", f"{text(9)} {' '.join(PASSAGE.split()[3:23])}"), OtherText("b", PASSAGE)]
    [shared] = shared_texts(known_texts(DATASET), others).found
    assert (shared.place, shared.kind, shared.share) == ("b", "equal", 1)
    [shared] = shared_texts(known_texts(DATASET), others[:1]).found
    assert (shared.place, shared.kind, len(shared.words.split())) == ("a", "run", 20)


def test_a_phrase_that_many_texts_of_the_dataset_share_is_no_overlap() -> None:
    phrase = text(15)
    corpus = {str(number): f"{text(40)} {phrase}" for number in range(25)}
    dataset = r2med.Dataset.of({"q": text(20)}, corpus, {"q": dict.fromkeys(corpus, 1)})
    assert shared_texts(known_texts(dataset), [OtherText("a", f"{text(30)} {phrase}")]).found == ()


def test_what_touches_a_phrase_that_many_documents_share_is_no_overlap_by_itself() -> None:
    phrase = text(20)
    corpus = {str(number): f"{phrase} The {text(40)}" for number in range(25)} | {"p": f"{phrase} {text(40)}"}
    dataset = r2med.Dataset.of({"q": text(20)}, corpus, {"q": {"0": 1, "1": 1}}, "phrases")
    others = [OtherText("a", f"{phrase} The {text(30)}")]
    assert shared_texts(known_texts(dataset), others, [dataset]).found == ()
    assert len(shared_texts(known_texts(dataset), others).found) == 2, "two documents alone do not show what is common"
    held = [OtherText("a", " ".join(corpus["0"].split()[-20:]))]
    assert [each.known.id for each in shared_texts(known_texts(dataset), held, [dataset]).found] == ["0"]


@pytest.mark.parametrize("row", [{"input_ids": [3, 5]}, {"a": 1}, {"one": 1, "two": 2}])
def test_a_file_without_texts_is_refused(row: dict[str, object], tmp_path: Path) -> None:
    with error_states("ids.jsonl", "nothing to compare"):
        overlap_finding(DATASET, write_jsonl(tmp_path / "ids.jsonl", [row]))


def test_only_for_a_dataset_the_command_that_shows_all_faults_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"text": "caf\xe9 noir"}\n' * 3)
    with pytest.raises(r2med.UserError, match="2 more") as caught:
        overlap_finding(DATASET, tmp_path / "rows.jsonl")
    assert "data check" not in str(caught.value)


ROWS = [{"id": "7", "prompt": QUESTION, "docs": [text(), PASSAGE]}, {"id": "8", "prompt": text(), "docs": [text()]}]
MESSAGES = [{"messages": [{"role": "user", "content": f"Hello\n{QUESTION}\nBye"}, {"content": PASSAGE}]}]


def _csv(path: Path) -> Path:
    path.write_text(f"number,asked,read\n1,{text()},{text()}\n2,{QUESTION},{PASSAGE}\n3,{text()},{text()}\n")
    return path


@pytest.mark.parametrize(
    "name", ["rows.jsonl", "messages.jsonl", "rows.csv", "rows.parquet", "rows.json", "words.jsonl"]
)
def test_every_kind_of_file_with_any_columns_is_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    match name:
        case "rows.jsonl":
            write_jsonl(file, ROWS)
        case "messages.jsonl":
            write_jsonl(file, MESSAGES)
        case "words.jsonl":
            write_jsonl(file, [{"tokens": text.split()} for text in (QUESTION, PASSAGE)])
        case "rows.csv":
            _csv(file)
        case "rows.parquet":
            write_parquet(file, ROWS)
        case _:
            file.write_text(json.dumps(ROWS))
    finding = overlap_finding(DATASET, file)
    assert (finding.numbers["questions"], finding.numbers["passages"], finding.numbers["touched"]) == (1, 1, 1)
    assert {row[1] for row in finding.evidence[0].rows} == {"q", "p"}
    assert all(name in str(row[4]) for row in finding.evidence[0].rows)


def test_an_audit_says_what_a_file_holds_or_that_no_overlap_was_found(tmp_path: Path) -> None:
    clean, taken = (write_jsonl(tmp_path / name, rows) for name, rows in (("a.jsonl", ROWS[1:]), ("b.jsonl", ROWS)))
    audited = r2med.audit(DATASET, against=[clean, str(taken)])
    first, second = (each for each in audited.findings if each.id == "overlap")
    assert (first.verdict, second.verdict) == ("sound", "look")
    states(first.sentence, "No overlap found", "a.jsonl", 2)
    states(second.sentence, "Overlap 50 %", "b.jsonl", "1 question", "1 relevant document", "1 of 2 queries")


def test_texts_are_looked_for_in_a_dataset_and_not_in_judgements_alone(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q 0 p 1\n")
    with error_states("texts", "dataset"):
        r2med.audit(qrels=tmp_path / "qrels.txt", against=tmp_path / "rows.jsonl")
    with error_states("no.jsonl", "does not exist"):
        r2med.audit(DATASET, against=tmp_path / "no.jsonl")
