"""What is reviewed: candidates of a build or of a table; samples that hold some of each label and grow."""

import json

import pytest

from r2med.assessment.review.reviews import Review
from r2med.construction.build_plan import BuildPlan
from r2med.construction.pipeline import BuildFolder
from r2med.construction.publish.dataset_folder import write_output
from r2med.construction.review_items import add_reviews, items_by_kind, read_guideline, read_reviews, review_items
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.names import BUILT_IN_STAGES
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.server import serving
from support.building import asked_of

PLAN = """
name = "mine"
llm = "gpt4"
steps = ["given-questions", "given-chunks", "given-candidates", "plant-controls", "judge(untested=yes)"]
[labels]
positive = 5
"""


def reply(request):
    high = "Kawasaki disease inflames" in request.messages[-1].content
    return json.dumps({"why": "x", "relevance": 5 * high, "support": 5 * high})


@pytest.fixture
def built(tmp_path, monkeypatch):
    for stream in ("questions", "chunks", "candidates"):
        monkeypatch.setitem(
            BUILT_IN_STAGES["build"].names, f"given-{stream}", f"support.building:Given{stream.title()}"
        )
    asked_of(reply, monkeypatch)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "guideline.md").write_text("Read twice.")
    build = BuildFolder(BuildPlan.read(tmp_path / "plan.toml"), tmp_path / "out")
    build.run(Runtime(llm="gpt4", store=Store(tmp_path / "store")))
    return build


def test_the_candidates_of_a_build_are_reviewed_but_for_controls_that_have_no_source(built):
    items = review_items(built.out)
    assert {item.stratum for item in items} == {"positive", "negative", "control"}
    assert len(items) == 9  # three real ones, and a near miss and a random one each
    first = next(item for item in items if item.stratum == "positive")
    assert (first.texts["question"], first.texts["answer"], first.origin["title"]) == (
        "A child with fever and a strawberry tongue?",
        "Kawasaki disease",
        "Vessels",
    )


def test_a_sample_holds_some_of_each_label_and_a_larger_one_holds_the_smaller(built):
    small, large = review_items(built.out, 3), review_items(built.out, 5)
    assert {item.stratum for item in small} == {"positive", "negative", "control"}
    assert large[:3] == small


def test_all_kinds_are_those_that_the_build_has_texts_of_and_the_guideline_comes_with_it(built):
    kinds = items_by_kind(built.out, "all")
    assert list(kinds) == ["passage", "question", "reasoning"]
    assert [item.id[0] for item in kinds["question"]] == ["q1", "q2", "q3"]
    assert read_guideline(built.out) == "Read twice."
    with pytest.raises(UserError, match=r"no kind of review items 'questoin' \(did you mean question"):
        items_by_kind(built.out, "questoin")


def test_an_item_needs_the_number_of_reviews_of_the_plan_unless_another_is_given(built, monkeypatch):
    shown = []
    monkeypatch.setattr(serving, "_serve_desks", lambda path, desks, port, what, *rest: shown.append(what))
    serving.serve_items(built.out)
    plan = built.out / "plan.toml"
    plan.write_text(f"reviews_per_item = 2\n{plan.read_text()}")
    for item in ("passage", "question"):
        serving.serve_items(built.out, kind=item)
    serving.serve_items(built.out, reviews_per_item=0)
    assert ["0 finished" in what for what in shown] == [False, True, True, False]


def test_a_build_that_is_not_done_is_told(built):
    (built.folder(5) / "step.json").unlink()
    with pytest.raises(UserError, match=r"step 5 .* is not done yet"):
        review_items(built.out)


def test_what_people_say_is_in_the_dataset_that_is_written(built, tmp_path):
    setup = Runtime(store=Store(tmp_path / "store"))

    def positives():
        folder = write_output(built, setup)
        rows = map(json.loads, (folder / "qrels.jsonl").read_text().splitlines())
        return {(row["q_id"], row["p_id"]) for row in rows}

    assert positives() == {("q1", "c1")}
    said = {("q1", "c1"): "reject", ("q2", "c2"): "accept"}
    add_reviews(
        built.out,
        [Review(question=q, chunk=c, annotator="Ann", verdict=verdict) for (q, c), verdict in said.items()],
    )
    assert positives() == {("q2", "c2")}


def test_reviews_of_texts_that_changed_are_counted_in_one_line(tmp_path, caplog):
    table = tmp_path / "candidates.csv"
    table.write_text("question_id,id,question,passage\nq1,c1,Which?,This one.\nq1,c2,Which?,That one.\n")
    pairs = [("q1", "c1"), ("q1", "c2")]
    add_reviews(table, [Review(question=q, chunk=c, annotator="Ann", verdict="accept") for q, c in pairs])
    assert len(read_reviews(table)) == 2
    assert caplog.messages == []
    table.write_text(table.read_text().replace("That one.", "Another one."))
    assert [review.chunk for review in read_reviews(table)] == ["c1"]
    (line,) = caplog.messages
    assert "reviews left out because their texts changed or are gone: 1 (r2med review serve" in line


def test_an_edited_step_file_is_not_reviewed(built):
    file = built.folder(5) / "items.jsonl"
    file.write_text(file.read_text() + "\n")
    with pytest.raises(
        UserError, match=r"items\.jsonl was changed after its step wrote it: r2med build run PLAN\.toml -o"
    ):
        review_items(built.out)


def test_a_table_needs_questions_and_passages(tmp_path):
    table = tmp_path / "c.csv"
    table.write_text("question,passage,title\nwhat?,this,T\nwhat?,that,\n")
    first, second = review_items(table)
    assert (first.texts["question"], first.texts["passage"], first.origin["title"]) == ("what?", "this", "T")
    assert first.id[0] == second.id[0]
    assert first.token != second.token
    table.write_text("question,text\nwhat?,this\n")
    with pytest.raises(UserError, match="no column 'passage'"):
        review_items(table)
