"""Figures as BrowseComp-Plus: equal to a plain computation of its rules on hundreds of files."""

import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest

import r2med
from r2med.assessment.answers.browsecomp_figures import GradedFile, browsecomp_figures, digit_citations
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.agents.agent_run_files import AgentRunFolder
from support.datasets import r2med_folder
from support.searching_agents import scripted_runtime, village


def synthetic(count: int, seed: int, ids: str = "") -> tuple[list[GradedFile], dict[str, list[str]]]:
    """Return files with all faults: not completed, empty, without a verdict, without a confidence."""
    chance = random.Random(seed)
    files, evidence = [], {}
    for number in range(count):
        query = str(number)
        evidence[query] = [f"{ids}{chance.randrange(300)}" for _ in range(chance.randint(1, 6))]
        marks = [chance.choice(["[{}]", "[{}, 7]", "【{}】", "[see {}]", "({})"]) for _ in range(chance.randrange(4))]
        text = " ".join(mark.format(f"{ids}{chance.randrange(300)}") for mark in marks)
        files.append(
            GradedFile(
                query,
                chance.random() > 0.1,
                chance.choice(["", f"Answer {text}", f"Answer {text}"]),
                [f"{ids}{chance.randrange(300)}" for _ in range(chance.randrange(40))],
                chance.choice([True, False, False, None]),
                chance.choice([None, 0.0, 55.5, 100.0, float(chance.randrange(101))]),
                {
                    "search": chance.randrange(9),
                    **({"get_document": chance.randrange(3)} if chance.random() > 0.5 else {}),
                },
            )
        )
    return files, evidence


def plainly(files: list[GradedFile], evidence: dict[str, list[str]]) -> dict[str, float]:
    """Compute the rules word by word."""
    read = len(files)
    precisions, recalls_cited, numbers = [], [], []
    for file in files:
        cited = set()
        if file.completed and file.answer:
            for inside in re.findall(r"\[([^\[\]]*?)\]", file.answer) + re.findall(r"【([^【】]*?)】", file.answer):
                cited |= set(re.findall(r"\d+", inside))
        if cited:
            both = cited & set(evidence[file.query])
            precisions.append(len(both) / len(cited))
            recalls_cited.append(len(both) / len(evidence[file.query]))
            numbers.append(len(cited))
    graded = [file for file in files if file.completed and file.answer]
    known = [(f.confidence, f.correct) for f in graded if f.correct is not None and f.confidence is not None]
    error = 0.0
    if len(known) >= 100:
        order = np.argsort(np.array([stated for stated, _ in known]) / 100)
        bins = [[i * 100, (i + 1) * 100] for i in range(len(known) // 100)]
        bins[-1][1] = len(known)
        for low, high in bins[:-1]:
            part = [known[place] for place in order[low:high]]
            mean = sum(stated for stated, _ in part) / 100 / len(part)
            share = sum(bool(correct) for _, correct in part) / len(part)
            error += len(part) / len(known) * (mean - share) ** 2
    recall = [len(set(f.retrieved) & set(evidence[f.query])) / len(evidence[f.query]) for f in files]
    names = {name for file in files for name in file.tool_calls}
    return {
        "files": read,
        "accuracy": round(100 * sum(f.correct is True for f in graded) / read, 2),
        "recall": round(100 * sum(recall) / read, 2),
        "calibration_error": round(100 * math.sqrt(error), 2),
        "citation_precision": round(100 * sum(precisions) / len(precisions), 2),
        "citation_recall": round(100 * sum(recalls_cited) / len(recalls_cited), 2),
        "citation_coverage": round(100 * len(precisions) / read, 2),
        "citations": sum(numbers) / len(numbers),
        **{f"calls {name}": sum(f.tool_calls.get(name, 0) for f in files) / read for name in names},
    }


@pytest.mark.parametrize("count", [30, 150, 450, 900])
@pytest.mark.parametrize("ids", ["", "Text-"])
def test_figures_equal_a_plain_computation_of_the_rules(count, ids):
    files, evidence = synthetic(count, count, ids)
    assert browsecomp_figures(files, evidence) == pytest.approx(plainly(files, evidence), abs=0.011)


@pytest.mark.parametrize(("count", "is_zero"), [(99, True), (150, True), (199, True), (200, False), (250, False)])
def test_the_calibration_error_leaves_out_its_last_bin(count, is_zero):
    files = [GradedFile(str(n), True, "x", (), n % 3 == 0, float(n % 100), {}) for n in range(count)]
    figures = browsecomp_figures(files, {str(n): ["1"] for n in range(count)})
    assert figures == pytest.approx(
        {**plainly([*files, GradedFile("0", True, "[1]", (), None, None, {})], {str(n): ["1"] for n in range(count)}),
         "files": count, "accuracy": figures["accuracy"], "citation_precision": 0, "citation_recall": 0,
         "citation_coverage": 0, "citations": 0}
    )  # fmt: skip
    assert (figures["calibration_error"] == 0) == is_zero


def test_digits_in_brackets_are_citations_whatever_stands_around_them():
    assert digit_citations("a [3, 17] b [Text-106] 【4】 (5) [no]") == {"3", "17", "106", "4"}


def test_a_question_without_evidence_has_no_figures():
    with pytest.raises(UserError, match="relevant documents"):
        browsecomp_figures([GradedFile("q", True, "x", (), True, None, {})], {})


def test_files_on_disk_give_the_same_figures(tmp_path: Path) -> None:
    files, evidence = synthetic(450, 3, "Text-")
    for number, file in enumerate(files):
        end = [{"type": "output_text", "output": file.answer}] if file.answer else []
        (tmp_path / f"run_{number:03}.json").write_text(
            json.dumps(
                {
                    "query_id": int(file.query),
                    "status": "completed" if file.completed else "incomplete",
                    "retrieved_docids": list(file.retrieved),
                    "tool_call_counts": file.tool_calls,
                    "result": [{"type": "reasoning", "output": "hm"}, *end],
                }
            )
        )
    read = AgentRunFolder.read(tmp_path)
    verdicts = {file.query: file for file in files}
    graded = [
        GradedFile(
            each.query, each.is_completed, each.answer, each.retrieved, verdicts[each.query].correct,
            verdicts[each.query].confidence, each.tool_calls,
        )
        for each in read.files
    ]  # fmt: skip
    assert browsecomp_figures(graded, evidence) == browsecomp_figures(files, evidence)
    assert read.search_steps == {"returned", "cited"} and not read.unreadable


def run_file(query: str, answer: str, found: list[str], status: str = "completed") -> dict:
    output = [{"docid": each, "score": 1.0, "snippet": "x"} for each in found]
    calls = [
        {"type": "reasoning", "output": ["hm"]},
        {"type": "tool_call", "tool_name": "search", "arguments": '{"query": "pain"}', "output": json.dumps(output)},
        {
            "type": "tool_call",
            "tool_name": "get_document",
            "arguments": json.dumps({"docid": found[0]}),
            "output": "{}",
        },
    ]
    end = [{"type": "output_text", "tool_name": None, "arguments": None, "output": answer}]
    counts = {"search": 1, "get_document": 1}
    return {"query_id": query, "status": status, "tool_call_counts": counts, "retrieved_docids": found,
            "metadata": {"model": "someone/their-model"}, "result": calls + (end if answer else [])}  # fmt: skip


def test_the_files_of_another_agent_are_scored_by_our_rules_and_by_theirs(tmp_path: Path) -> None:
    documents = [{"id": f"Text-{n}", "text": f"passage {n}"} for n in range(6)]
    names = ("right", "late", "absent")
    queries = [{"id": name, "text": f"What is {name} here?", "answer": "Gout"} for name in names]
    qrels = [{"q_id": name, "p_id": f"Text-{n}", "score": 1} for name in names for n in (1, 2)]
    data = tmp_path / "set"
    r2med_folder(data, documents, queries, qrels)
    runs = tmp_path / "runs"
    runs.mkdir()
    right = run_file("right", "Gout [Text-1, Text-5].\nConfidence: 80%", ["Text-1", "Text-3", "Text-5"])
    late = run_file("late", "Gout [Text-1]", ["Text-2"], status="incomplete")
    for number, value in enumerate([right, late, run_file("foreign", "x", ["Text-1"])]):
        (runs / f"run_{number}.json").write_text(json.dumps(value))
    (runs / "run_9.json").write_text("{")
    with Runtime(store=Store(tmp_path / "store")) as opened:
        (record,) = r2med.answer(
            f"agent-run:{runs}", data=data, conditions="searched", out=tmp_path / "out", setup=opened
        )
    assert record.reader == "someone/their-model"
    assert record.mean["searched"]["accuracy"] == pytest.approx(1 / 3), "a question without a file is wrong"
    given = {each.query: each for each in record.given(next((tmp_path / "out").rglob("*.answers.json")).parent)}
    assert given["absent"].status == "unreadable" and given["late"].status == "unreadable"
    scores = given["right"].scores
    assert {name: scores[name] for name in ("returned-recall", "shown-recall", "opened-recall", "cited-recall")} == {
        "returned-recall": 0.5, "shown-recall": 0.5, "opened-recall": 0.5, "cited-recall": 0.5
    }  # fmt: skip
    assert (
        "kept-recall" not in scores and scores["citation-relevance"] == 0.5 and scores["brier"] == pytest.approx(0.04)
    )
    assert record.as_browsecomp["files"] == 2 and record.as_browsecomp["accuracy"] == 50.0
    assert record.as_browsecomp["citation_precision"] == 0.0, "Text-1 is read as 1, which is no document"
    assert record.as_browsecomp["recall"] == 50.0


def test_files_that_are_written_are_read_as_the_same_answers(tmp_path: Path) -> None:
    names = ["finder", "dropper", "inventor", "quitter"]
    data, out = village(tmp_path / "set", names), tmp_path / "out"
    with scripted_runtime(tmp_path) as opened:
        (own,) = r2med.answer("agent(script, calls=tags)", data=data, conditions="searched", out=out, setup=opened)
        files = r2med.export_records(out, layout="browsecomp", out=tmp_path / "files", max_failures=1.0)
        folder = files[0].parent
        (again,) = r2med.answer(
            f"agent-run:{folder}", data=data, conditions="searched", out=tmp_path / "b", setup=opened
        )
    assert len(files) == 4 and again.reader == "script"
    for query, scores in own.per_query["searched"].items():
        kept = {name: value for name, value in scores.items() if name != "kept-recall"}
        assert again.per_query["searched"][query] == pytest.approx(kept), query
    assert again.as_browsecomp == own.as_browsecomp
    assert again.statuses == own.statuses
