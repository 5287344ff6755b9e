"""Rerankers by card: for every form, the ranking equals a plain implementation written here, bad answers included."""

import json
import math
import random
import re
import string
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from r2med import UserError
from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.names import known_names, stage_class
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import stage_of
from r2med.models.llm.chat import ChatRequest, Failure, RawAnswer
from r2med.models.llm.llm_cards import LLMS, sampling_of
from r2med.systems.rerank.llm_prompts import open_prompts
from r2med.systems.rerank.llm_reranker import LLMRerankerStage
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS, LLMRerankerCard
from r2med.systems.rerank.parse_scores import parse_scores
from r2med.systems.rerank.setwise import heapsort
from support.by_day import some_by_day
from support.llm_rerankers import graded, permutation, places, rerank, scores

SHOWN = re.compile(r"[\[ ](\w+)\][.:]? document (\d+) of query|Passage (\w+): \"document (\d+) of query")


def written(request: ChatRequest) -> str:
    """Return everything that a request shows."""
    return request.prompt or "\n".join(message.content for message in request.messages)


def shown(request: ChatRequest) -> dict[str, int]:
    """Return the documents of a prompt: label -> place in the first ranking."""
    return {first or third: int(second or fourth) for first, second, third, fourth in SHOWN.findall(written(request))}


def choice(request: ChatRequest, seed: int) -> random.Random:
    """Return a generator that depends on what a prompt shows, as a model's answer does."""
    return random.Random(f"{seed} {sorted(shown(request).values())}")


# Listwise ---------------------------------------------------------------------------------------------------------

LISTWISE = {
    "reasonrank-7b": "smaller",
    "reasonrank-32b": "smaller",
    "rank-k-32b": "smaller",
    "rankzephyr-7b": "smaller",
    "insertrank(ranker)": "smaller",
    "rearank-7b": "none",
    "rankgpt(ranker)": "none",
}


def faulty_order(count: int, rng: random.Random) -> list[int]:
    """Return numbers of passages as a model may write them: some left out, repeated or invented."""
    order = rng.sample(range(1, count + 1), count)
    fault = rng.randrange(4)
    if fault == 1:
        order = order[: rng.randint(1, count)]
    if fault == 2:
        order.insert(rng.randrange(len(order)), rng.choice(order))
    if fault == 3:
        order.insert(rng.randrange(len(order)), count + 7)
    return order


def said_order(name: str, order: list[int], rng: random.Random) -> str:
    """Return an answer with an order, in the form of a model."""
    separators = [rng.choice([" > ", " = "]) if name.startswith("rank-k") else " > " for _ in order[1:]] + [""]
    chain = "".join(f"[{number}]{separator}" for number, separator in zip(order, separators, strict=True))
    if name.startswith(("reasonrank", "rearank")):
        thought = "<think> [9] and [1] compete </think> " if rng.random() < 0.7 else ""
        return f"{thought}<answer> {chain} </answer>" if rng.random() < 0.8 else chain
    return f"I compared them.\n{chain}" if name.startswith("rank-k") else chain


def plain_order(name: str, text: str, count: int) -> list[int]:
    """Read an order as the authors describe it: indices from 0; passages that are left out follow."""
    found: list[int] = []
    if name.startswith("rank-k"):
        groups: list[list[int]] = []
        seen: set[int] = set()
        stopped = False
        for part in text.splitlines()[-1].split(">"):
            groups.append([])
            for entry in part.split("="):
                number = int(re.sub(r"\D", "", entry))
                stopped = stopped or number in seen
                if not stopped:
                    seen.add(number)
                    groups[-1].append(number)
        found = [number for group in groups for number in group]  # tied passages as the answer names them
    else:
        inside = re.search(r"<answer>(.*?)</answer>", text)
        found = [int(number) for number in re.findall(r"\d+", inside[1] if inside else text)]
    named = list(dict.fromkeys(number for number in found if 1 <= number <= count))
    return [number - 1 for number in [*named, *(n for n in range(1, count + 1) if n not in named)]]


def slid(count: int, window: int, step: int, last: str, order_of: Callable[[list[int]], list[int]]) -> list[int]:
    """Slide a window from the bottom to the top, as the loops of the authors do."""
    ranking = list(range(count))
    end, start = count, count - window
    while end > 0 and (start >= 0 if last == "none" else start + step > 0 or end == count):
        start = max(start, 0)
        ranking[start:end] = order_of(ranking[start:end])
        end, start = end - step, start - step
    return ranking


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", LISTWISE)
def test_listwise_rankings_equal_a_plain_implementation(name: str, seed: int, tmp_path: Path) -> None:
    count = random.Random(seed).choice([5, 20, 21, 35, 57, 100])

    def answer_about(documents: list[int]) -> str:
        rng = random.Random(f"{seed} {sorted(documents)}")
        return said_order(name, faulty_order(len(documents), rng), rng)

    def reply(request: ChatRequest) -> str:
        return answer_about(list(shown(request).values()))

    def order_of(documents: list[int]) -> list[int]:
        return [documents[index] for index in plain_order(name, answer_about(documents), len(documents))]

    reranked, _ = rerank(name, reply, graded(permutation(count)), tmp_path)
    assert places(reranked.run) == slid(count, 20, 10, LISTWISE[name], order_of)
    assert reranked.failures == 0


@pytest.mark.parametrize("seed", range(50))
def test_first_orders_letters_by_the_probability_of_the_first_token(seed: int, tmp_path: Path) -> None:
    count = random.Random(seed).choice([3, 20, 26, 60])

    def choices(documents: list[int]) -> list[tuple[str, float]]:
        rng = random.Random(f"{seed} {sorted(documents)}")
        letters = rng.sample(string.ascii_uppercase[: len(documents)], max(1, len(documents) - rng.randrange(3)))
        return [("The", -0.5), *((letter, -rng.random() * 9) for letter in letters)]

    def reply(request: ChatRequest) -> RawAnswer:
        assert request.prompt is not None and request.prompt.endswith("[") and request.top_logprobs == 20
        found = choices(list(shown(request).values()))
        return RawAnswer(found[1][0], finish_reason="length", first_choices=tuple(found))

    def order_of(documents: list[int]) -> list[int]:
        logprobs = dict(choices(documents)[1:])
        letters = [string.ascii_uppercase[index] for index in range(len(documents))]
        known = sorted(logprobs, key=lambda letter: -logprobs[letter])
        return [documents[letters.index(letter)] for letter in [*known, *(x for x in letters if x not in known)]]

    reranked, llm = rerank("first-7b", reply, graded(permutation(count)), tmp_path, card=own_llm("first-7b"))
    assert places(reranked.run) == slid(count, 20, 10, "smaller", order_of)
    assert all(request.sampling.max_tokens == 1 for request in llm.asked)


def own_llm(name: str):
    llm = LLM_RERANKERS.card(name).llm
    assert llm is not None
    return llm


# Setwise ----------------------------------------------------------------------------------------------------------


def heap_sorted(items: list[int], children: int, top: int, best_of: Callable[[list[int]], int]) -> list[int]:
    """Sort with a heap as the setwise paper does, recursively: swap the root to the end, and sift the new root."""
    heap = list(items)

    def sift(size: int, node: int) -> None:
        places = [node, *range(children * node + 1, min(children * (node + 1) + 1, size))]
        if len(places) == 1:
            return
        best = places[best_of([heap[place] for place in places])]
        if best != node:
            heap[node], heap[best] = heap[best], heap[node]
            sift(size, best)

    for node in range(len(heap) // children, -1, -1):
        sift(len(heap), node)
    for ranked, last in enumerate(range(len(heap) - 1, 0, -1), 1):
        heap[last], heap[0] = heap[0], heap[last]
        if ranked == top:
            break
        sift(last, 0)
    first = heap[::-1][:top]
    return [*first, *(item for item in items if item not in first)]


@pytest.mark.parametrize("seed", some_by_day(range(50), 5))
@pytest.mark.parametrize("name", ["setwise(ranker)", "rank-r1-7b", "rank-r1-32b"])
def test_setwise_rankings_equal_a_plain_implementation(name: str, seed: int, tmp_path: Path) -> None:
    children = {"setwise(ranker)": 3, "rank-r1-7b": 19, "rank-r1-32b": 9}[name]
    count = random.Random(seed).choice([2, 5, 11, 30, 100])

    def pick(documents: list[int]) -> int | None:
        """Return a document of a set, or None for an answer without a label; whatever order the set has."""
        rng = random.Random(f"{seed} {sorted(documents)}")
        return rng.choice([*sorted(documents), *sorted(documents), None])

    def reply(request: ChatRequest) -> str:
        best, labels = pick(list(shown(request).values())), shown(request)
        if best is None:
            return "<answer>none of them</answer>"
        label = next(label for label, document in labels.items() if document == best)
        return label if name.startswith("setwise") else f"<think> well </think> <answer>[{label}]</answer>"

    def best_of(documents: list[int]) -> int:
        best = pick(documents)
        return 0 if best is None else documents.index(best)  # a void answer is won by the parent

    reranked, _ = rerank(name, reply, graded(permutation(count)), tmp_path)
    assert places(reranked.run) == heap_sorted(list(range(count)), children, 10, best_of)


def test_zero_shot_setwise_shows_the_parent_first_and_rank_r1_a_random_order(tmp_path: Path) -> None:
    for name, in_heap_order in (("setwise(ranker)", True), ("rank-r1-7b", False)):
        _, llm = rerank(name, lambda request: "nothing", graded(permutation(30)), tmp_path)
        first = [list(shown(request).values()) for request in llm.asked][:1]
        assert all((documents[0] == min(documents)) == in_heap_order for documents in first), name


def test_a_right_llm_brings_the_ten_best_to_the_top_with_few_comparisons() -> None:
    worth = permutation(100)
    sorting = heapsort(100, 19, 10)
    asked, members = 0, next(sorting)
    while True:
        asked += 1
        try:
            members = sorting.send(max(range(len(members)), key=lambda index: worth[members[index]]))
        except StopIteration as done:
            order = done.value
            break
    assert order[:10] == sorted(range(100), key=lambda place: -worth[place])[:10]
    assert order[10:] == sorted(order[10:])
    assert asked < 40


# Groupwise and pointwise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(13))
@pytest.mark.parametrize("name", ["grouprank-7b", "grouprank-32b", "grouprank-32b:sorted", "grouprank(ranker)"])
def test_groupwise_rankings_equal_a_plain_implementation(name: str, seed: int, tmp_path: Path) -> None:
    count = random.Random(seed).choice([4, 20, 40, 100])
    groups: list[list[int]] = []
    answers: list[dict[int, int] | None] = []

    def reply(request: ChatRequest) -> str:
        labels, rng = shown(request), choice(request, seed)
        scores = {label: rng.randint(0, 10) for label in labels}
        if rng.random() < 0.3:  # an id is left out
            scores.pop(rng.choice(list(scores)))
        broken = rng.random() < 0.1
        groups.append(list(labels.values()))
        answers.append(None if broken else {labels[label]: score for label, score in scores.items()})
        if broken:
            return "<reason> I cannot say </reason>"
        listed = json.dumps({f"[{label}]": score for label, score in scores.items()})
        fenced = f"```json\n{listed}\n```" if rng.random() < 0.7 else listed
        return f"<reason> [1]: 9 is likely </reason>\n<answer>\n{fenced}\n</answer>"

    reranked, _ = rerank(name, reply, graded(permutation(count)), tmp_path)
    scores: dict[int, int] = {}
    for group, said in zip(groups, answers, strict=True):
        scores |= dict.fromkeys(group, 0) if said is None else said
    assert sorted(document for group in groups for document in group) == list(range(count))
    if name.endswith("sorted"):
        assert groups == [list(range(start, start + len(group))) for start, group in starts(groups)]
    scored = [place for place in range(count) if place in scores]
    ranking = iter(sorted(scored, key=lambda place: -scores[place]))
    # A passage without a score keeps its place.
    assert places(reranked.run) == [next(ranking) if place in scores else place for place in range(count)]


def starts(groups: list[list[int]]) -> list[tuple[int, list[int]]]:
    return [(sum(map(len, groups[:index])), group) for index, group in enumerate(groups)]


@pytest.mark.parametrize("seed", some_by_day(range(50), 5))
@pytest.mark.parametrize("name", ["retro-star-8b", "erank-4b", "rank1-7b"])
def test_pointwise_rankings_equal_a_plain_implementation(name: str, seed: int, tmp_path: Path) -> None:
    count = random.Random(seed).choice([2, 9, 30])
    scores: dict[int, float] = {}

    def reply(request: ChatRequest) -> RawAnswer | str:
        (document,) = map(int, re.findall(r"document (\d+) of query", written(request)))
        rng = random.Random(f"{seed} {document}")
        if name.startswith("retro"):
            score, broken = rng.randint(0, 120), rng.random() < 0.1
            scores[document] = 0 if broken else min(score, 100)
            return "no score" if broken else f"Analysis: it is 3.\n<score> {score} </score> <score>1</score>"
        if name.startswith("erank"):
            score, logprobs = rng.randint(0, 10), [-rng.random() for _ in range(2)]
            digits = list(str(score))
            scores[document] = score * math.exp(sum(logprobs[: len(digits)]))
            tokens = [
                ("ter", -3.0),
                ("</think><answer>", -1.0),
                (" ", -2.0),
                *zip(digits, logprobs, strict=False),
                ("</", -1.0),
            ]
            text = f"<think> 7 of 9 </think><answer> {score} </answer>"
            return RawAnswer(text, last_tokens=tuple(tokens), first_choices=(("<", 0.0),))
        return rank1(request, document, rng, scores)

    reranked, llm = rerank(name, reply, graded(permutation(count)), tmp_path, card=own_llm(name))
    assert places(reranked.run) == sorted(range(count), key=lambda place: -scores[place])
    if name == "rank1-7b":
        assert len(llm.asked) == 2 * count


def rank1(request: ChatRequest, document: int, rng: random.Random, scores: dict[int, float]) -> RawAnswer:
    """Answer as a raw completion: first the thought up to its end, then one token."""
    assert request.prompt is not None
    cut = rng.random() < 0.3
    if request.sampling.stop:
        assert request.prompt.endswith("<think>")
        return RawAnswer(
            " It names the disease. It al" if cut else " It names it. ", finish_reason="length" if cut else ""
        )
    thought = request.prompt.rpartition("<think>")[2]
    assert thought in (("It names the disease.\n</think>",) if cut else (" It names it. </think>",))
    true, false, neither = -rng.random() * 3, -rng.random() * 3, rng.random() < 0.1
    scores[document] = 0.5 if neither else math.exp(true) / (math.exp(true) + math.exp(false))
    choices = (("\n", -0.1),) if neither else ((" true", true), (" false", false), ("true", -0.01))
    return RawAnswer(" true", finish_reason="length", first_choices=choices)


# What all cards share -----------------------------------------------------------------------------------------------


def test_every_card_has_a_prompt_and_a_stage_and_is_listed() -> None:
    assert len(LLM_RERANKERS) > 30
    for name in LLM_RERANKERS:
        card = LLM_RERANKERS[name]
        prompts = open_prompts(card, "case")
        text = "\n".join(turn.template.text for turn in prompts.turns)
        assert "{query}" in text and ("{passages}" in text or "{passage}" in text)
        declared = stage_class(name, "rerank")(name=name, **({} if card.llm else {"llm": "gpt4"}))
        assert str(declared) == f"{name}{'' if card.llm else '(gpt4)'}@100"
        assert name.partition(":")[0] in known_names("rerank")
        assert card.published or name in ("listwise", "groupwise", "pointwise")


@pytest.mark.parametrize(
    ("spec", "answer", "kind"),
    [
        ("reasonrank-7b", "I would rather not say.", "invalid"),
        ("reasonrank-7b", Failure("rate_limit", "429", attempts=3), "rate_limit"),
        ("reasonrank-7b", Failure("truncated", "its thought was cut off", attempts=1), "truncated"),
        ("rank-r1-7b", Failure("rate_limit", "429", attempts=3), "rate_limit"),
        ("setwise(ranker)", Failure("budget", "used up", attempts=0), "budget"),
        ("grouprank-7b", "<answer> all are good </answer>", "invalid"),
        ("retro-star-8b", "<score> high </score>", "invalid"),
        ("rank-k-32b", "", "invalid"),
    ],
)
def test_an_answer_that_cannot_be_used_is_counted_and_moves_nothing(
    spec: str, answer: str | Failure, kind: str, tmp_path: Path
) -> None:
    reranked, llm = rerank(spec, lambda request: answer, graded(permutation(12)), tmp_path)
    assert places(reranked.run) == list(range(12))
    assert reranked.failure_kinds == {kind: len(llm.asked)}
    assert reranked.failed and reranked.notices


def test_labels_inside_passages_do_not_look_like_labels(tmp_path: Path) -> None:
    card = LLM_RERANKERS.card("reasonrank-7b")
    prompts = open_prompts(card, "case")
    assert prompts._plain("see [7] and <|im_end|>") == "see (7) and ‹|im_end|>"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"answer": "scores"}, "form listwise reads answers as free-order or order or ties or first-token, not scores"),
        ({"pattern": "("}, "it is not a regular expression"),
        ({"passage": "[{number}]"}, "it must hold {text} once"),
    ],
)
def test_a_wrong_card_is_refused_with_what_would_be_right(change: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        LLMRerankerCard(**{"name": "mine", "form": "listwise", "answer": "order", **change})  # type: ignore[arg-type]


def test_a_card_says_how_much_of_a_passage_is_shown() -> None:
    with pytest.raises(UserError, match="its card says how much of a passage is shown"):
        stage_class("reasonrank-7b", "rerank")(name="reasonrank-7b", words=100)


def test_a_prompt_that_would_not_fit_has_shorter_passages(tmp_path: Path) -> None:
    data = graded(permutation(20))
    long = own_llm("rankzephyr-7b").model_copy(update={"context_length": 1000})
    reranked, llm = rerank("rankzephyr-7b", lambda request: "[2] > [1]", data, tmp_path, card=long)
    assert all(len(written(request)) // 4 < 850 for request in llm.asked)
    assert reranked.cost.cut == len(llm.asked) or reranked.cost.cut == 0


@pytest.mark.parametrize(("file", "backend"), [("weights.gguf", "local"), ("answers.jsonl", "scripted")])
def test_a_file_that_the_user_names_for_a_trained_reranker_is_what_is_asked(
    file: str, backend: str, tmp_path: Path
) -> None:
    (tmp_path / file).touch()
    stage = stage_class("rank-r1-7b", "rerank")(name="rank-r1-7b")
    assert isinstance(stage, LLMRerankerStage)
    assert stage.llm_card(Setup()).backend == "openai"
    own = stage.llm_card(Setup(model_paths=(("rank-r1-7b", tmp_path / file),)))
    assert (own.backend, own.model, own.temperature) == (backend, "ielabgroup/Rank-R1-7B-v0.1", 0.0)


# What the authors' code does ---------------------------------------------------------------------------------------


def of_cosines(worth: list[float], span: float = 0.07) -> tuple[Dataset, Run]:
    """Return the candidates of a retriever whose cosines are as close to each other as real ones."""
    dataset, run = graded(worth)
    cosines = np.linspace(0.8 + span, 0.8, len(worth), dtype=np.float32)[None]
    return dataset, Run(run.queries, run.rows, cosines, run.documents)


def in_tens(request: ChatRequest) -> str:
    """Score each passage 0, 2, 4, 6 or 8, so that many are equal."""
    return f"<answer>{json.dumps({f'[{label}]': place % 5 * 2 for label, place in shown(request).items()})}</answer>"


def test_grouprank_adds_the_raw_cosine_which_only_orders_equal_scores(tmp_path: Path) -> None:
    fused, _ = rerank("grouprank(ranker)@20", in_tens, of_cosines(permutation(20)), tmp_path)
    expected = {place: 0.6 * (place % 5 * 2) / 10 + 0.4 * (0.87 - 0.07 * place / 19) for place in range(20)}
    assert places(fused.run) == sorted(range(20), key=lambda place: -expected[place])
    assert scores(fused.run) == pytest.approx(sorted(expected.values(), reverse=True))
    assert places(fused.run) == sorted(range(20), key=lambda place: (-(place % 5), place)) and not fused.notices


def test_grouprank_after_bm25_adds_no_scores_and_says_so(tmp_path: Path) -> None:
    fused, _ = rerank("grouprank-7b@20", in_tens, graded(permutation(20)), tmp_path)
    assert places(fused.run) == sorted(range(20), key=lambda place: (-(place % 5), place))
    assert any("are not cosines, so they only order documents with equal LLM scores" in said for said in fused.notices)


def test_ties_by_id_are_ordered_as_the_authors_evaluation_does(tmp_path: Path) -> None:
    """trec_eval orders equal scores by document id, descending."""
    by_id, _ = rerank("grouprank(ranker, weight=1, ties=id)@20", in_tens, of_cosines(permutation(20)), tmp_path)
    assert places(by_id.run) == sorted(range(20), key=lambda place: (-(place % 5), -place))
    kept, _ = rerank("grouprank(ranker, weight=1)@20", in_tens, of_cosines(permutation(20)), tmp_path)
    assert places(kept.run) == sorted(range(20), key=lambda place: (-(place % 5), place))


def test_rankgpt_and_setwise_ask_at_temperature_0_and_another_can_be_given() -> None:
    def temperature(spec: str) -> float | None:
        declared = stage_of(parse_stage(spec)[0], "rerank")
        assert isinstance(declared, LLMRerankerStage)
        return sampling_of(declared.llm_card(Setup())).temperature

    assert temperature("rankgpt(gpt4)") == temperature("setwise(gpt4)") == 0
    assert temperature("rankgpt(gpt4, temperature=0.4)") == 0.4
    assert temperature("groupwise(gpt4)") == LLMS["gpt4"].temperature
    assert temperature("rankgpt(o3-mini)") is None, "the API accepts none"


@pytest.mark.parametrize("name", ["reasonrank-7b", "reasonrank-8b", "rank-k-32b", "rank-r1-7b", "rank-r1-32b"])
def test_line_breaks_in_passages_stay_as_in_the_authors_prompts(name: str) -> None:
    prompts = open_prompts(LLM_RERANKERS.card(name), "case")
    assert prompts.shortened(" Fever.\nNo rash.\n", prompts.size) == "Fever.\nNo rash."


def test_a_key_with_a_bracket_too_many_is_read(tmp_path: Path) -> None:
    read = parse_scores('{"[1]": 5, "[2]]": 9}', 2)
    assert read is not None and (read.value, read.repairs) == ({0: 5.0, 1: 9.0}, {})
