"""Answers are compared like rankings, and what retrieval is worth is computed from answer records."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from r2med import compare
from r2med.evaluation.comparison.answer_worth import ALL_DATASETS, Worth, correlations, worth, worth_tables
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record, record_key
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Estimate
from support.synthetic_answers import synthetic, varying, write

SYSTEMS = {"bm25": 0.2, "dense": 0.4, "best": 0.8}
QUESTIONS = 30


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three systems with one reader on two datasets. Better rankings give better answers."""
    folder, random = tmp_path_factory.mktemp("answers"), np.random.default_rng(0)
    for dataset in ("Biology", "PMC-Clinical"):
        closed, relevant, others = (random.random((3, QUESTIONS)) < [[0.1], [0.9], [0.05]]).astype(float).tolist()
        for system, quality in SYSTEMS.items():
            retrieved = (random.random(QUESTIONS) < quality).astype(float).tolist()
            ndcg = np.clip(quality + random.normal(0, 0.2, QUESTIONS), 0, 1).tolist()
            values = {"closed book": closed, "retrieved": retrieved, "relevant": relevant, "random": others}
            write(synthetic(values, system, dataset=dataset, retrieval=ndcg), folder)
    return folder


def test_answers_are_compared_paired_by_question_and_stratified(answers: Path) -> None:
    compared = compare(answers=True, results=answers, baseline="bm25", slice_by=["task"], resamples=200)
    assert compared.measure == "accuracy"
    assert compared.baseline == "bm25 · smollm2"
    assert {pair.a for pair in compared.pairs} == {"dense · smollm2", "best · smollm2"}
    best = next(pair for pair in compared.pairs if pair.a == "best · smollm2")
    assert best.significant
    rows = {
        each.record.system: each.record.answers.mean["retrieved"]["accuracy"]
        for each in collect([answers], kind="answers")
        if each.record.dataset.name == "Biology"
    }
    assert best.datasets["Biology"].difference == pytest.approx(100 * (rows["best"] - rows["bm25"]))
    assert {each.label for each in compared.slices} == {"Q&A reference", "clinical case"}


def test_without_passages_all_systems_are_equal(answers: Path) -> None:
    compared = compare(answers=True, condition="closed book", results=answers, resamples=200)
    assert not any(pair.significant for pair in compared.pairs)
    assert compared.detectable_gap is None


def test_the_interval_of_a_gain_stays_within_the_possible_range(tmp_path: Path) -> None:
    values = {"closed book": [0.0] * 6, "retrieved": [1.0] * 5 + [0.0]}
    write(synthetic(values), tmp_path)
    (only,) = worth(collect([tmp_path], kind="answers"))
    assert only.gain is not None
    assert only.gain.high == 100


def test_answers_and_rankings_are_not_mixed_up(answers: Path) -> None:
    with pytest.raises(UserError, match="without a lock and without overlays"):
        compare(answers=True, results=answers, lock="my.lock")
    with pytest.raises(UserError, match=r"answers \(--answers\) and condition \(--condition\)"):
        compare(results=answers, condition="random")


def test_gain_and_share_are_those_of_paired_questions(answers: Path) -> None:
    found = {(each.name, each.dataset): each for each in worth(collect([answers], kind="answers"))}
    assert len(found) == 9  # three systems on two datasets and over both
    each, record = found["best · smollm2", "Biology"], None
    for kept in collect(["best"], answers, kind="answers"):
        record = kept.record if kept.record.dataset.name == "Biology" else record
    assert record is not None and each.gain and each.random and each.share
    mean = {condition: values["accuracy"] for condition, values in record.answers.mean.items()}
    assert each.gain.value == pytest.approx(100 * (mean["retrieved"] - mean["closed book"]))
    assert each.random.value == pytest.approx(100 * (mean["random"] - mean["closed book"]))
    gap = mean["relevant"] - mean["closed book"]
    assert each.share.value == pytest.approx((mean["retrieved"] - mean["closed book"]) / gap)
    assert each.share.low is not None and each.share.low < each.share.value
    (across,) = correlations(collect([answers], kind="answers"))
    assert (across.reader, across.systems, across.questions) == ("smollm2", 3, 2 * QUESTIONS)
    assert across.observed is not None and across.observed > 0.9


def test_datasets_may_be_named_by_group_or_folder(answers: Path, tmp_path: Path) -> None:
    collection = collect([answers], kind="answers")
    (tmp_path / "nothing").mkdir()
    for data, names in ((["clinical-case"], {"PMC-Clinical"}), (["R2MED"], {"Biology", "PMC-Clinical"})):
        assert {each.dataset for each in worth(collection, data=data)} - {ALL_DATASETS} == names
    with pytest.raises(UserError, match="no dataset"):
        worth(collection, data=[str(tmp_path / "nothing")])


def test_a_condition_that_was_not_asked_leaves_its_columns_empty(tmp_path: Path) -> None:
    write(synthetic({"closed book": [0, 1] * 5, "retrieved": [1, 1] * 5}), tmp_path)
    (each,) = worth(collect([tmp_path], kind="answers"))
    assert each.gain is not None and each.gain.value == 50
    assert each.random is None and each.share is None
    assert correlations(collect([tmp_path], kind="answers")) == []


def test_a_report_about_answers_has_tables_of_their_worth(answers: Path, tmp_path: Path) -> None:
    written = compare(answers=True, results=answers, out=tmp_path, resamples=50)
    names = {file.name for file in written.files}
    assert {"worth.md", "worth-correlation.csv", "table.tex", "pairs.csv", "scores.svg"} <= names
    assert "best · smollm2,all datasets,60" in (tmp_path / "worth.csv").read_text()


def in_repeat(record: Record, repeat: int) -> Record:
    settings = {**record.settings, **({"repeat": repeat} if repeat else {})}
    key = record_key(settings, "Biology", "answers")
    return varying(record).model_copy(update={"settings": settings, "key": key})


def repeated(folder: Path, shift: float, system: str = "bm25", repeats: int = 5) -> Worth:
    """Return what retrieval is worth in repeats whose answers with passages have shifts of this standard deviation."""
    random = np.random.default_rng(1)
    closed, relevant = random.uniform(0.1, 0.3, 40), random.uniform(0.6, 0.9, 40)
    for repeat in range(repeats):
        retrieved = np.clip(closed + 0.2 + shift * random.normal() + random.normal(0, 0.01, 40), 0, 1)
        values = {"closed book": closed.tolist(), "retrieved": retrieved.tolist(), "relevant": relevant.tolist()}
        made = synthetic(values, system, retrieval=np.full(40, repeat / 10).tolist())
        write(in_repeat(made, repeat), folder)
    [found] = worth(collect([folder], kind="answers"))
    return found


def half(estimate: Estimate) -> float:
    low, high = estimate.bounds
    return (high - low) / 2


def test_what_retrieval_is_worth_contains_the_chance_of_the_runs(tmp_path: Path) -> None:
    steady, shifted = (repeated(tmp_path / str(shift), shift) for shift in (0.0, 0.05))
    assert (steady.runs, shifted.runs, shifted.varies) == (5, 5, True)
    for wide, narrow in (
        (shifted.gain, steady.gain),
        (shifted.share, steady.share),
        (shifted.scores["retrieved"], steady.scores["retrieved"]),
    ):
        assert wide is not None and narrow is not None
        assert half(wide) > 2 * half(narrow)
    runs = [
        np.mean([row["accuracy"] for row in each.record.answers.per_query["retrieved"].values()])
        - np.mean([row["accuracy"] for row in each.record.answers.per_query["closed book"].values()])
        for each in collect([tmp_path / "0.05"], kind="answers").runs_of_all
    ]
    assert shifted.gain is not None
    assert shifted.gain.value == pytest.approx(100 * np.mean(runs))
    # Nearly all chance is a shift of the runs, so the interval is Student's of the five runs.
    by_runs = student.ppf(0.975, 4) * 100 * np.std(runs, ddof=1) / np.sqrt(5)
    assert half(shifted.gain) == pytest.approx(by_runs, rel=0.05)


def test_a_row_of_few_runs_says_so_and_its_interval_is_of_the_questions(tmp_path: Path) -> None:
    once = repeated(tmp_path / "once", 0.05, repeats=1)
    table, *_ = worth_tables(collect([tmp_path / "once"], kind="answers"))
    assert table.rows[0][table.heads.index("runs")] == "one run"
    plain = synthetic({"closed book": [0.0] * 40, "retrieved": [1.0, 0.0] * 20})
    write(plain, tmp_path / "plain")
    assert "runs" not in worth_tables(collect([tmp_path / "plain"], kind="answers"))[0].heads
    assert (once.runs, once.varies) == (1, True)


def test_the_correlation_across_systems_is_that_of_the_means_over_runs(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    for system, repeat in product(("bm25", "dense", "best"), range(3)):
        ndcg, right = random.uniform(0, 1, (2, 12)).tolist()
        write(in_repeat(synthetic({"retrieved": right}, system, retrieval=ndcg), repeat), tmp_path)
    collection = collect([tmp_path], kind="answers")
    [found] = correlations(collection)
    scores = [
        [
            np.mean(values)
            for values in zip(
                *[
                    (each.record.mean["nDCG@10"], each.record.answers.mean["retrieved"]["accuracy"])
                    for each in collection.runs_of_all
                    if each.record.system == system
                ],
                strict=True,
            )
        ]
        for system in ("bm25", "dense", "best")
    ]
    assert found.observed == pytest.approx(np.corrcoef(np.transpose(scores))[0, 1])
