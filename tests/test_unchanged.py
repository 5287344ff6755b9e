"""The referee of values, `benchmarks/unchanged.py`: it reports each changed value and nothing else."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import unchanged  # noqa: E402
from unchanged_values import Key, compare, read_values, table, tree  # noqa: E402

COST = {"seconds": 0.5, "calls": 2, "prompt_tokens": 20}
RUN = {
    "system": "bm25",
    "dataset": {"name": "own/small"},
    "mean": {"nDCG@10": 0.5},
    "per_query": {"q1": {"nDCG@10": 1.0}, "q2": {"nDCG@10": 0.0}},
    "run": {"file": "bm25.trec.gz"},
    "stages": [
        {"stage": "retrieve", "name": "bm25", "cost": COST, "failures": 0, "asked": 0, "failure_kinds": {}}
        | {"repairs": {}, "gold": {"q1": {"d1": 1}}}
    ],
}
ANSWER = {
    "system": "bm25",
    "reader": "llm",
    "form": "open",
    "dataset": {"name": "small"},
    "mean": {"retrieved": {"accuracy": 0.5}},
    "per_query": {"retrieved": {"q1": {"accuracy": 1.0}, "q2": {"accuracy": 0.0}}},
    "statuses": {"retrieved": {"answered": 2}},
    "reader_costs": {"retrieved": COST},
    "retrieval": {"q1": 0.3},
    "judge": {"judge": "llm", "controls": {"denied": [5, 7]}},
}
COMPARE = {
    "means": {"bm25": {"mean": {"value": 50.0, "low": None}}},
    "pairs": [{"a": "bm25", "b": "rm3", "p": 0.04, "datasets": {"small": {"p": 0.05}}}],
    "marks": {"bm25": {"letters": "a", "better": 1}, "rm3": {"letters": "b", "better": 0}},
}
AUDIT = {"findings": [{"id": "copies", "verdict": "sound", "numbers": {"copies": 3}}]}
QRELS = [{"q_id": "q1", "p_id": "d1", "score": 1}, {"q_id": "q1", "p_id": "d2", "score": 2}]
DATASHEET = """\
# Built

|  |  |
| :-- | :-- |
| Queries | 4 |
| Precision | unknown |

**Labels, by who decided**

| label | judges |
| :-- | --: |
| positive | 6 |
| negative | 26 |
"""


def write_outputs(folder: Path) -> None:
    """Write a small output of each kind."""
    contents: dict[str, Any] = {
        "results/small/bm25.json": RUN,
        "results/small/bm25__llm.answers.json": ANSWER,
        "printed/compare.json": COMPARE,
        "printed/compare, slices.json": COMPARE,
        "printed/audit, demo.json": AUDIT,
        "prompts/judge.json": {"number": 7, "digest": "0a1b"},
        "labels/judged.jsonl": [{"dataset": "small", "query": "q1", "document": "d1", "grade": 1, "said": "3"}],
        "made/exam/qrels.jsonl": QRELS,
        "made/exam/corpus.jsonl": [{"id": "d1", "text": "Iron."}, {"id": "d2", "text": "Knee."}],
        "training/triplets.jsonl": [{"query": "Why?", "positive": "Iron."}, {"query": "Why?", "positive": "Knee."}],
    }
    for name, content in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = content if isinstance(content, list) else [content]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with gzip.open(folder / "results/small/bm25.trec.gz", "wt") as lines:
        lines.write("q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n")
    (folder / "analysis-gap").mkdir()
    (folder / "analysis-gap/gap.csv").write_text("dataset,gap\nsmall,14.5\nlarge,7.5\n")
    (folder / "made/exam/README.md").write_text(DATASHEET)


CHANGES = {
    Key("run", "bm25", dataset="small", query="q2", measure="nDCG@10"): (
        "results/small/bm25.json",
        '"q2": {"nDCG@10": 0.0',
        '"q2": {"nDCG@10": 0.1',
    ),
    Key("stage", "bm25", dataset="small", query="retrieve bm25", measure="cost calls"): (
        "results/small/bm25.json",
        '"calls": 2',
        '"calls": 3',
    ),
    Key("answer", "bm25", "llm", "retrieved, open", "small", "q1", "accuracy"): (
        "results/small/bm25__llm.answers.json",
        '"q1": {"accuracy": 1.0',
        '"q1": {"accuracy": 0.0',
    ),
    Key("compare", "bm25 – rm3", dataset="small", measure="pairs p"): (
        "printed/compare.json",
        '"p": 0.05',
        '"p": 0.06',
    ),
    Key("compare", "rm3", condition="slices", measure="marks letters"): (
        "printed/compare, slices.json",
        '"letters": "b"',
        '"letters": "a"',
    ),
    Key("audit", condition="demo", query="copies", measure="findings verdict"): (
        "printed/audit, demo.json",
        "sound",
        "broken",
    ),
    Key("table gap", dataset="large", measure="gap"): ("analysis-gap/gap.csv", "7.5", "7.6"),
    Key("table datasheet Labels, by who decided", condition="made/exam", query="negative", measure="judges"): (
        "made/exam/README.md",
        "26",
        "27",
    ),
    Key("table datasheet Built", condition="made/exam", query="Precision", measure=" 2"): (
        "made/exam/README.md",
        "unknown",
        "0.95",
    ),
    Key("labels judged", dataset="small", query="q1 · d1", measure="grade"): (
        "labels/judged.jsonl",
        '"grade": 1',
        '"grade": 0',
    ),
    Key("dataset qrels", dataset="made/exam", query="q1 · d2", measure="score"): (
        "made/exam/qrels.jsonl",
        '"score": 2',
        '"score": 1',
    ),
    Key("dataset corpus", dataset="made/exam", query="d2", measure="text"): (
        "made/exam/corpus.jsonl",
        "Knee.",
        "Knees.",
    ),
    Key("training training/triplets.jsonl", query="row 2", measure="positive"): (
        "training/triplets.jsonl",
        "Knee.",
        "Knees.",
    ),
    Key("prompts judge", measure="digest"): ("prompts/judge.json", "0a1b", "0a1c"),
}


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    write_outputs(tmp_path / "before")
    return Path(shutil.copytree(tmp_path / "before", tmp_path / "now"))


@pytest.mark.parametrize("key", CHANGES, ids=lambda key: f"{key.kind} {key.condition}")
def test_one_changed_value_is_reported_and_no_other(outputs: Path, key: Key) -> None:
    file, before, now = CHANGES[key]
    text = (outputs / file).read_text()
    assert text.count(before) == 1
    (outputs / file).write_text(text.replace(before, now))
    found = compare(read_values(outputs.with_name("before")), read_values(outputs))
    assert (found.differs, found.gone, found.new) == ([key], [], [])


def test_every_kind_of_value_has_a_planted_change(outputs: Path) -> None:
    assert {key.kind for key in read_values(outputs)} == {key.kind for key in CHANGES} | {"ranking"}


def test_a_document_at_another_rank_is_reported(outputs: Path) -> None:
    with gzip.open(outputs / "results/small/bm25.trec.gz", "wt") as lines:
        lines.write("q1 Q0 d2 1 2.5 bm25\nq1 Q0 d1 2 1.5 bm25\n")
    found = compare(read_values(outputs.with_name("before")), read_values(outputs))
    assert [key.kind for key in found.differs] == ["ranking"]


def test_equal_outputs_have_no_differences(outputs: Path) -> None:
    before = read_values(outputs.with_name("before"))
    found = compare(before, read_values(outputs))
    assert (len(found.equal), found.differs, found.gone, found.new) == (len(before), [], [], [])


def test_a_missing_file_is_gone_and_does_not_differ(outputs: Path) -> None:
    (outputs / "analysis-gap/gap.csv").unlink()
    found = compare(read_values(outputs.with_name("before")), read_values(outputs))
    assert {key.kind for key in found.gone} == {"table gap"}
    assert found.differs == []


def test_rows_with_equal_labels_do_not_hide_each_other(outputs: Path) -> None:
    file = outputs / "analysis-gap/gap.csv"
    file.write_text("dataset,gap\nsmall,14.5\nsmall,7.5\n")
    values = {key: value for key, value in read_values(outputs).items() if key.kind == "table gap"}
    assert sorted(values.values()) == [7.5, 14.5]  # type: ignore[type-var]


def test_repeats_are_known_by_their_number_and_not_by_their_files(outputs: Path) -> None:
    def write_repeats(folder: Path, files: dict[str, int]) -> None:
        for name, repeat in files.items():
            record = {**RUN, "settings": {"repeat": repeat}, "mean": {"nDCG@10": repeat / 10}}
            (folder / "results/small" / name).write_text(json.dumps(record))

    write_repeats(outputs.with_name("before"), {"bm25-1a.json": 1, "bm25-2b.json": 2})
    write_repeats(outputs, {"bm25-3c.json": 2, "bm25-4d.json": 1})
    found = compare(read_values(outputs.with_name("before")), read_values(outputs))
    assert (found.differs, found.gone, found.new) == ([], [], [])


def test_the_order_of_rows_counts_only_where_they_have_no_names(outputs: Path) -> None:
    for name in ("made/exam/qrels.jsonl", "training/triplets.jsonl"):
        lines = (outputs / name).read_text().splitlines()
        (outputs / name).write_text("\n".join(reversed(lines)))
    (outputs / "analysis-gap/gap.csv").write_text("dataset,gap\nlarge,7.5\nsmall,14.5\n")
    found = compare(read_values(outputs.with_name("before")), read_values(outputs))
    assert {key.kind for key in (*found.differs, *found.gone)} == {"training training/triplets.jsonl"}


def test_no_value_and_nan_are_equal_to_themselves_alone() -> None:
    def differs(first: Any, second: Any) -> bool:
        return bool(compare({Key("run"): first}, {Key("run"): second}).differs)

    assert not differs(None, None)
    assert not differs(math.nan, math.nan)
    assert differs(math.nan, 0.0)
    assert differs(None, 0.0)
    assert differs(0.0, None)
    assert differs(0.1 + 0.2, 0.3)


def test_numbers_of_models_have_a_tolerance_and_others_have_none() -> None:
    before = {Key("run", "minilm"): 0.5, Key("run", "bm25"): 0.5}
    near = dict.fromkeys(before, 0.5 + 1e-07)
    far = dict.fromkeys(before, 0.5 + 0.001)
    assert [key.system for key in compare(before, near).differs] == ["bm25"]
    assert len(compare(before, far).differs) == 2


def test_documents_of_a_model_change_places_only_within_its_tolerance() -> None:
    key = Key("ranking", "minilm")
    before = (("d1", 0.8), ("d2", 0.8 - 1e-7), ("d3", 0.2))
    assert not compare({key: before}, {key: (("d2", 0.8), ("d1", 0.8 - 1e-7), ("d3", 0.2))}).differs
    assert compare({key: before}, {key: (("d1", 0.8), ("d3", 0.8 - 1e-7), ("d2", 0.2))}).differs


def test_a_table_without_names_is_read_by_places() -> None:
    assert [key.query for key, _ in table([{"n": "1"}, {"n": "2"}], Key("table"))] == ["row 1", "row 2"]


def test_times_and_digests_are_no_values() -> None:
    assert dict(tree({"seconds": 3, "created": 2026, "p50": 0.1, "dollars": 0.5}, Key("run"))) == {
        Key("run", measure="dollars"): 0.5
    }


def test_an_exception_covers_what_it_names_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [Key("compare", measure="pairs p"), Key("compare", measure="pairs low"), Key("table gap", measure="gap")]
    before, now = dict.fromkeys(keys, 0.1), dict.fromkeys(keys, 0.2)
    monkeypatch.setitem(unchanged.EXCEPTIONS, Key("compare", measure="pairs p"), "51, W1")
    monkeypatch.setitem(unchanged.EXCEPTIONS, Key("table gap"), "51, W6")
    assert unchanged.report(before, now, compare(before, now), {}, 10) == 1


def test_what_is_gone_is_a_fault_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {Key("table rank-shift"): 0.1, Key("table scaling"): 0.1}
    monkeypatch.setitem(unchanged.GONE, Key("table rank-shift"), "52, row 8")
    assert unchanged.report(before, {}, compare(before, {}), {}, 10) == 1


def test_an_exception_names_a_measure_a_system_or_a_table() -> None:
    for key in unchanged.EXCEPTIONS:
        assert key.measure or key.system or key.kind.startswith("table "), f"{key}: it covers too much"


def test_what_a_killed_run_leaves_is_not_taken_for_whole(tmp_path: Path) -> None:
    place = tmp_path / "outputs"
    killed = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(BENCHMARKS)!r})
import unchanged  # noqa: E402

def make(folder):
    (folder / "first").touch()
    os.kill(os.getpid(), signal.SIGKILL)

unchanged.made_once(Path({str(place)!r}), make)
"""
    assert subprocess.run([sys.executable, "-c", killed]).returncode == -signal.SIGKILL
    assert not place.exists()
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "all").touch()

    for _ in range(2):
        unchanged.made_once(place, make)
    assert [file.name for file in place.iterdir()] == ["all"]
    assert len(made) == 1


def test_a_column_of_intervals_holds_values_and_a_column_of_words_names_rows() -> None:
    rows = [{"who": "both", "agree": "25%", "95 %": "-0.34 to 0.37"}, {"who": "one", "agree": "–", "95 %": ""}]
    assert dict(table(rows, Key("table"))) == {
        Key("table", query="both", measure="agree"): "25%",
        Key("table", query="both", measure="95 %"): "-0.34 to 0.37",
        Key("table", query="one", measure="agree"): None,
        Key("table", query="one", measure="95 %"): None,
    }


def test_a_record_of_answers_has_the_same_values_in_the_shape_of_both_commits(tmp_path: Path) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        write_outputs(tmp_path / name)
    names = ("reader", "form", "mean", "per_query", "statuses", "judge")
    answers = {name: ANSWER[name] for name in names} | {"costs": ANSWER["reader_costs"]}
    ranked = {query: {"nDCG@10": value} for query, value in ANSWER["retrieval"].items()}
    record = {"system": "bm25", "dataset": ANSWER["dataset"], "mean": {}, "per_query": ranked, "answers": answers}
    (tmp_path / "after/results/small/bm25__llm.answers.json").write_text(json.dumps(record))
    assert dict(read_values(tmp_path / "before")) == dict(read_values(tmp_path / "after"))
