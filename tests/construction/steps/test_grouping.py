"""Diagnoses grouped by meaning: relevance, controls and leaks follow."""

import csv

import pytest

from r2med.construction.diagnosis_groups import DiagnosisGroups
from r2med.construction.items import Candidate, PageChunk, SourceQuestion
from r2med.construction.pipeline import BuildFolder
from r2med.construction.publish.datasheet import grouping_table
from r2med.construction.steps.controls import NearMiss, PlantControls
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from support.building import run_step, streams
from support.builds import built, lines


def case(number, diagnosis):
    return {"patient_uid": f"c{number}", "title": "", "patient": f"Patient {number} is ill.", "diagnosis": diagnosis}


CASES = lines(
    case(1, "Heart attack"),
    case(2, "heart attack"),
    case(3, "Myocardial infarction"),
    case(4, "Acute MI"),
    case(5, "Graves' disease"),
    case(6, "Graves disease"),
    case(7, "Acute myocardial infarction"),
    case(8, "Measles"),
    case(9, "Measles"),
    case(10, "Pulmonary embolism"),
    case(11, "Pulmonary embolus"),
)
TABLE = "\ufeffconcept,term\nMyocardial infarction,heart attack\nMyocardial infarction,MI\n"
READ = ["read-cases(c.jsonl)", "read-case-pages(c.jsonl)"]
READ_BY_TABLE = ["read-cases(c.jsonl, synonyms=t.csv)", "read-case-pages(c.jsonl, synonyms=t.csv)"]
SOURCES = {"c.jsonl": CASES, "t.csv": TABLE}


def positives(build, step):
    return {question.id: question.positives for question in build.items(step)}


def again(build):
    build.run(build.plan.setup(store=Store(build.plan.file.parent / "store")))
    return BuildFolder(build.plan, build.out)


def test_cases_with_synonymous_diagnoses_are_relevant_to_each_other(tmp_path):
    build = built(tmp_path, [*READ_BY_TABLE, "group-diagnoses(synonyms=t.csv)"], SOURCES)
    assert positives(build, 1) == {"q-c1": ("c2", "c3"), "q-c5": ("c6",), "q-c8": ("c9",)}
    assert [page.id for page in build.items(2)] == ["c2", "c3", "c4", "c6", "c7", "c9", "c10", "c11"]
    first, *_ = build.items(3)
    assert (first.answer_group, first.other_names) == ("Myocardial infarction", ("Myocardial infarction", "MI"))
    with (build.out / "groups.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {(row["term"], row["group"], row["by"]) for row in csv.DictReader(file)}
    assert ("Heart attack", "Myocardial infarction", "table") in rows
    assert ("Graves disease", "Graves disease", "string") in rows
    assert "Measles" not in {term for term, _, _ in rows}


def test_without_a_table_the_reader_compares_strings_and_the_step_adds_other_spellings(tmp_path):
    cases = lines(case(1, "Graves disease"), case(2, "graves  disease"), case(3, "Graves’ Disease"))
    build = built(tmp_path, [*READ, "group-diagnoses"], {"c.jsonl": cases})
    assert positives(build, 1) == {"q-c1": ("c2",)}
    assert positives(build, 3) == {"q-c1": ("c2", "c3")}


def test_a_synonym_of_the_answer_in_the_question_is_a_leak(tmp_path):
    table = "id,question,answer\na,After an MI he is tired.,Heart attack\nb,Crushing pain.,Heart attack\n"
    steps = ["read-table(q.csv)", "group-diagnoses(synonyms=t.csv)", "check-leaks"]
    build = built(tmp_path, steps, {"q.csv": table, **SOURCES}, [(["Entity:"], {"names": []})])
    assert [(left.key, left.note) for left in build.rejected(3)] == [("a", "MI")]


def test_controls_do_not_name_a_synonym_of_the_answer(tmp_path):
    names = {"answer_group": "Myocardial infarction"}
    questions = [
        SourceQuestion(id="q1", text="Pain?", answer="Heart attack", other_names=("Coronary occlusion", "MI"), **names),
        SourceQuestion(id="q2", text="Pain now?", answer="Coronary occlusion", other_names=("Heart attack",), **names),
    ]
    texts = ["Heart attack kills.", "Coronary occlusions kill.", "An MI kills.", "Measles itch.", "MILD pain.", "ECG."]
    chunks = [PageChunk(id=f"c{n}", text=text, page=f"p{n}") for n, text in enumerate(texts)]
    candidates = [Candidate(question=f"q{n}", chunk=chunk) for n, chunk in ((1, "c0"), (2, "c1"), (2, "c5"))]
    given = streams(tmp_path, questions=questions, chunks=chunks, candidates=candidates)
    kept, _, _ = run_step(PlantControls(each=20), given, tmp_path)
    assert {item.control for item in kept if item.question == "q1"} == {
        "random",
        "stuffed",
        "with orders to the judge",
    }  # q2 is no near miss
    assert {item.chunk for item in kept if item.question == "q1" and not item.text} == {
        "c3",
        "c4",
    }  # c5 may be evidence
    assert not any("coronary" in item.text.lower() or "MI " in item.text for item in kept if item.question == "q1")


def test_a_near_miss_that_an_llm_wrote_about_a_synonym_is_asked_for_again(tmp_path):
    question = SourceQuestion(id="q", text="Pain?", answer="Heart attack", other_names=("Myocardial infarction",))
    step, angina = PlantControls(llm="gpt4"), NearMiss(condition="angina", passage="Pain on effort.")
    assert step.read(question, angina).text == "Pain on effort."
    with pytest.raises(ValueError, match="names the answer"):
        step.read(question, NearMiss(condition="angina", passage="Unlike Myocardial Infarctions, it passes."))


def test_diagnoses_that_differ_in_spelling_only_are_one_group():
    groups = DiagnosisGroups()
    assert groups.group("Grave's disease") == groups.group("graves disease") != groups.group("gout")


def test_the_datasheet_counts_diagnoses_by_the_way_they_were_grouped():
    table = grouping_table([("MI", "Infarction", "table"), ("a", "A", "string"), ("A", "A", "string")])
    assert [count for _, count in table.rows] == [1, 2]


def test_without_any_group_there_is_no_list_and_the_next_build_is_the_same(tmp_path):
    build = built(tmp_path, [*READ, "group-diagnoses"], {"c.jsonl": lines(case(1, "Measles"), case(2, "Measles"))})
    assert not (build.out / "groups.csv").exists()
    assert again(build).status()[2].kept == 1


def test_a_missing_table_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"the plan names it as 'none\.csv'"):
        built(tmp_path, [*READ, "group-diagnoses(synonyms=none.csv)"], {"c.jsonl": CASES})


def test_builds_without_groups_keep_their_keys(tmp_path):
    build = built(tmp_path, READ, {"c.jsonl": CASES})
    assert "synonyms" not in build.status()[0].described
    assert not (build.out / "groups.csv").exists()
