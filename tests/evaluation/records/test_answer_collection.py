"""Answer records are read, checked, and viewed as records that can be compared."""

from pathlib import Path

import pytest

from r2med.evaluation.comparison.answer_worth import worth
from r2med.evaluation.comparison.comparing import ComparedWith, compared_answers
from r2med.evaluation.records.answer_views import answer_views
from r2med.evaluation.records.collection import collect
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from support.facts import states
from support.synthetic_answers import synthetic, varying, with_answers, write

RIGHT = [1, 1, 0, 1]


def test_only_questions_that_every_record_has_a_value_for_count_and_the_others_are_counted(tmp_path: Path) -> None:
    write(synthetic({"retrieved": RIGHT}), tmp_path)
    write(synthetic({"retrieved": [0, None, 0, 1]}, "dense"), tmp_path)
    views = answer_views(collect([tmp_path], kind="answers"))
    (queries, rows) = views.collection.values("accuracy")["Biology"]
    assert queries == ("q0", "q2", "q3")
    assert dict(zip(views.collection.systems, rows.tolist(), strict=True)) == {
        "bm25 · smollm2": [1, 0, 1],
        "dense · smollm2": [0, 0, 1],
    }
    assert any("Biology: 1 of 4 questions" in notice for notice in views.notices)


def test_a_record_of_few_questions_does_not_cut_those_of_all_others(tmp_path: Path) -> None:
    for system in ("bm25", "dense"):
        write(synthetic({"retrieved": RIGHT}, system), tmp_path)
    write(synthetic({"retrieved": RIGHT[:1]}, "tried"), tmp_path)
    views = answer_views(collect([tmp_path], kind="answers"))
    assert views.collection.systems == ("bm25 · smollm2", "dense · smollm2")
    assert len(views.collection.values("accuracy")["Biology"][0]) == 4
    notice = "tried · smollm2 on Biology is left out: it answers 1 questions, and others 4 or more"
    assert notice in views.notices


def test_the_record_with_the_most_questions_is_used_and_two_numbers_of_passages_are_two_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    few = synthetic({"retrieved": RIGHT[:2]}).model_copy(update={"key": "a" * 32, "named": "2999-01-01"})
    write(few, tmp_path)
    write(synthetic({"retrieved": RIGHT}), tmp_path)
    (kept,) = (read := collect([tmp_path], kind="answers"))
    assert len(kept.record.queries) == 4
    states(caplog.text.strip(), "1 older record", "more questions", "bm25 · smollm2 on Biology")
    write(with_answers(synthetic({"retrieved": RIGHT}), passages=10).model_copy(update={"key": "b" * 32}), tmp_path)
    read = collect([tmp_path], kind="answers")
    assert {*read.systems} == {"bm25 · smollm2 · 5 passages", "bm25 · smollm2 · 10 passages"}


def test_a_record_of_earlier_code_is_refused_in_one_line_and_left_out_beside_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The record that replaces it has another name, so it stays in the folder."""
    old = write(synthetic({"retrieved": RIGHT}).model_copy(update={"format": 1}), tmp_path)
    message = f"{old} is a record of format 1, but this version reads format 4: make it again with r2med answer 'bm25'"
    with pytest.raises(UserError) as refused:
        collect([tmp_path], kind="answers")
    assert str(refused.value) == message
    write(synthetic({"retrieved": RIGHT}, "dense"), tmp_path)
    assert [each.record.system for each in collect([tmp_path], kind="answers")] == ["dense"]
    assert caplog.messages == [f"{message}: it is left out"]


def test_answers_are_found_by_system_and_by_reader(tmp_path: Path) -> None:
    for system, reader in (("bm25", "smollm2"), ("bm25", "gpt4"), ("dense", "gpt4")):
        write(synthetic({"retrieved": RIGHT}, system, reader), tmp_path)
    found = {name: len(collect([name], tmp_path, kind="answers").cells) for name in ("bm25", "gpt4", "bm25 · gpt4")}
    assert found == {"bm25": 2, "gpt4": 2, "bm25 · gpt4": 1}
    write(synthetic({"retrieved": RIGHT}, "rm3 → bm25", "gpt4"), tmp_path)
    assert [len(collect([name], tmp_path, kind="answers").cells) for name in ("rm3->bm25", "rm3 -> bm25 · gpt4")] == [
        1,
        1,
    ]
    views = answer_views(collect([], tmp_path, kind="answers"))
    compared = compared_answers(views, ComparedWith(baseline="rm3 -> bm25", resamples=10))
    assert compared.baseline == "rm3 → bm25 · gpt4"
    with pytest.raises(UserError, match="no answer record, folder, system or reader 'bm26'"):
        collect(["bm26"], tmp_path, kind="answers")


def test_what_cannot_be_compared_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no answer records"):
        collect([tmp_path], kind="answers")
    record = synthetic({"retrieved": RIGHT})
    path = write(record, tmp_path)
    with pytest.raises(UserError, match="is a record of answers, not of a ranking"):
        collect([path])
    read = collect([tmp_path], kind="answers")
    with pytest.raises(UserError, match="no record has vital-recall"):
        answer_views(read, "vital-recall")
    with pytest.raises(UserError, match="no measure of answers 'nDCG@10'"):
        answer_views(read, "nDCG@10")
    with pytest.raises(UserError, match="no condition 'open book'"):
        answer_views(read, condition="open book")
    write(with_answers(synthetic({"retrieved": RIGHT}, "dense"), form="choice"), tmp_path)
    with pytest.raises(UserError, match="cannot be compared: give the paths of one form"):
        answer_views(collect([tmp_path], kind="answers"))


def test_a_record_with_many_failures_or_impossible_values_is_refused(tmp_path: Path) -> None:
    failed = synthetic({"retrieved": [1, None, None, None]})
    failed = with_answers(failed, statuses={"retrieved": {"answered": 1, "failed": 3}})
    write(failed, tmp_path)
    with pytest.raises(UserError, match="3 of 4 questions failed"):
        answer_views(collect([tmp_path], kind="answers"))
    assert answer_views(collect([tmp_path], kind="answers"), max_failures=1).collection.datasets == ("Biology",)
    write(synthetic({"retrieved": RIGHT}, system="other"), tmp_path)
    views = answer_views(collect([tmp_path], kind="answers"))
    assert len(views.collection.systems) == 1
    assert any("3 of 4 questions failed" in notice and "it is left out" in notice for notice in views.notices)
    forged = with_answers(synthetic({"retrieved": RIGHT}), mean={"retrieved": {"accuracy": 1.0}})
    write(forged, tmp_path / "forged")
    with pytest.raises(UserError, match=r"the mean of its queries is 0\.75"):
        collect([tmp_path / "forged"], kind="answers")


def test_different_judges_and_the_notices_of_records_are_said(tmp_path: Path) -> None:
    from r2med.evaluation.records.answer_facts import JudgeFacts

    judged = {"judge": JudgeFacts(judge="gpt4"), "notices": ("The judge is of the family of the reader.",)}
    write(with_answers(synthetic({"retrieved": RIGHT}), **judged), tmp_path)
    write(synthetic({"retrieved": RIGHT}, "dense"), tmp_path)
    notices = answer_views(collect([tmp_path], kind="answers")).notices
    assert any("different judges (gpt4, no LLM)" in notice for notice in notices)
    assert "bm25 · smollm2 on Biology: The judge is of the family of the reader" in notices


def test_a_view_has_the_cost_of_its_own_condition_without_the_judge(tmp_path: Path) -> None:
    costs = {"closed book": Cost(dollars=1.0, seconds=1.0), "retrieved": Cost(dollars=4.0, seconds=2.0)}
    record = with_answers(synthetic({"closed book": RIGHT, "retrieved": RIGHT}), costs=costs)
    write(record, tmp_path)
    read = collect([tmp_path], kind="answers")
    found = {name: next(iter(answer_views(read, condition=name).collection)).record for name in costs}
    assert {name: each.cost.dollars for name, each in found.items()} == {"closed book": 1.0, "retrieved": 4.0}
    searching = record.cost_of("retrieve").seconds
    assert found["retrieved"].cost.seconds - found["closed book"].cost.seconds == 1.0 + searching


def test_repeats_of_answers_are_compared_by_their_means_and_their_chance(tmp_path: Path) -> None:
    often = [[1, 1, 0, 1, 0, 1, 1, 0], [1, 0, 0, 1, 0, 1, 1, 1], [1, 1, 0, 1, 1, 1, 0, 0]]
    for repeat, right in enumerate(often):
        made = synthetic({"retrieved": right, "closed book": [0] * 8}, "often")
        changes = {"key": str(repeat) * 32, "settings": {"repeat": repeat} if repeat else {}}
        write(varying(made).model_copy(update=changes), tmp_path)
    write(varying(synthetic({"retrieved": [0, 1, 0, 0, 0, 1, 0, 0]}, "once")), tmp_path)
    read = collect([tmp_path], kind="answers")
    compared = compared_answers(answer_views(read), ComparedWith(resamples=50))
    known = {each.system: each for each in compared.systems}
    first, second = known["often · smollm2"], known["once · smollm2"]
    assert first.mean is not None and first.mean.value == pytest.approx(100 * 15 / 24)
    assert (first.run_words, second.run_words) == ("3 runs", "one run")
    [of_all] = [each for each in worth(read) if each.name == "often · smollm2"]
    assert of_all.gain is not None and of_all.gain.value == pytest.approx(100 * 15 / 24)
