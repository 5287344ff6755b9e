"""A plan: stage by stage, what is kept, to fetch and missing."""

from dataclasses import replace
from pathlib import Path

import pytest

import r2med
from r2med.data.dataset_cards import groups
from r2med.evaluation.running import planning
from r2med.evaluation.running.batch import plan_run
from r2med.evaluation.running.plan_table import plan_table
from r2med.evaluation.running.planning import stage_plans
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.models.crossencoders.pair_scorer import ScoredPair
from r2med.models.llm.call_plans import asking_seconds
from r2med.models.llm.chat import ChatRequest, Message, RawAnswer, Sampling
from r2med.models.llm.costs import plan_requests
from r2med.models.llm.llm_cards import LLMCard
from r2med.systems.rerank.pair_scores import score_memo
from support.chat_models import save_answer


def planned(systems: list[str], data: list[str], setup: Setup) -> dict[str, Plan]:
    plan = plan_run(systems, data, setup=setup)
    return {stage.name: stage for _, stages in stage_plans(plan) for stage in stages}


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Runtime(store=Store(tmp_path / "store"))


def test_every_stage_is_told_with_what_it_would_need(setup: Setup) -> None:
    stages = planned(["hyde(o3-mini) → bm25+bge → bge-reranker@10", "minilm"], ["Biology"], setup)
    assert stages["hyde(o3-mini)"].missing == "OPENAI_API_KEY is not set; export it before the run"
    assert (
        stages["bm25"].work.endswith("documents; 0 of 1 datasets are in the store")
        and (stages["bm25"].seconds or 0) > 1
    )
    assert stages["bge"].fetch == 335e6 * 4 and (stages["bge"].seconds or 0) > 60
    reranker = stages["bge-reranker@10"]
    assert (reranker.fetch or 0) > 1e9 and (reranker.seconds or 0) > 60
    assert reranker.work == "scores 1,030 pairs of queries and documents"
    assert stages["minilm"].fetch == 0  # its weights come with a package


def test_a_model_of_two_encoders_is_as_large_as_both(setup: Setup) -> None:
    medcpt = planned(["medcpt"], ["Biology"], setup)["medcpt"]
    assert medcpt.fetch == 2 * 110e6 * 4 and medcpt.seconds


def test_what_datasets_with_the_same_documents_share_is_not_planned_again(setup: Setup) -> None:
    demo = r2med.load("demo/Biology", setup.store)
    both = [replace(demo, name="first"), replace(demo, name="second", queries=demo.queries[:4])]
    r2med.run("bm25", both, out=None, setup=setup)
    plan = plan_run(["bm25"], both[:1], setup=setup)
    [(_, [stage])] = stage_plans(plan)
    assert stage.work == "indexes 0 documents; 1 of 1 datasets are in the store"


def test_what_is_kept_is_not_planned_again(setup: Setup) -> None:
    r2med.run("bm25", "demo/Biology", out=None, setup=setup)
    stages = planned(["bm25", "hyde(author) → bm25"], ["demo/Biology"], setup)
    assert stages["bm25"].work == "indexes 0 documents; 1 of 1 datasets are in the store"
    assert stages["hyde(author)"].work == "reads recorded texts"


def test_the_time_of_an_llm_is_that_of_its_answers_of_before_or_a_guess(setup: Setup) -> None:
    card = LLMCard(name="judge", model="judge-1")
    asked = tuple(ChatRequest((Message("user", f"question {number}"),), Sampling()) for number in range(32))
    preview = plan_requests(card, asked)
    seconds, answers = asking_seconds(card, preview, setup)
    assert (seconds > 0, answers) == (True, 0)
    save_answer(setup.store, b"1", "judge-1", RawAnswer("yes", seconds=3.0))
    save_answer(setup.store, b"2", "judge-1", RawAnswer("no", seconds=5.0))
    save_answer(setup.store, b"3", "another", RawAnswer("no", seconds=500.0))
    assert asking_seconds(card, preview, setup) == (32 * 4.0 / setup.setup.concurrency, 2)
    assert asking_seconds(card, preview, setup.with_settings(llm_backend="local")) == (32 * 4.0, 2)


def test_the_time_of_a_reranker_is_that_of_pairs_it_has_scored(setup: Setup) -> None:
    with score_memo(setup.store, "bge-reranker") as memo:
        memo.put({b"a": ScoredPair(0.5, seconds=0.1), b"b": ScoredPair(0.5, seconds=0.3)})
    stages = planned(["bm25 → bge-reranker@10"], ["Biology"], setup)
    assert stages["bge-reranker@10"].seconds == pytest.approx(1030 * 0.2)


def test_what_has_its_own_index_or_weights_is_not_said_to_be_encoded_or_downloaded(
    setup: Setup, tmp_path: Path
) -> None:
    run = tmp_path / "found.trec"
    run.write_text("0 Q0 d 1 1.0 x\n")
    systems = [f"run:{run} → py:mine:Model@5", "py:mine:Model"]
    stages = planned(systems, ["demo/Biology"], setup)
    assert all(stage.fetch == 0 for stage in stages.values())
    assert stages[f"run:{run}"].work == "reads an existing run; nothing is indexed or encoded"
    assert stages["py:mine:Model"].work.endswith("the model loads its weights itself")
    assert stages["py:mine:Model@5"].work.endswith("the model loads its weights itself")


@pytest.mark.parametrize("system", ["bge:nonsense", "bm25 → bge-reranker:nonsense@5", "path:nowhere"])
def test_a_name_that_means_no_model_stops_the_plan(setup: Setup, system: str) -> None:
    with pytest.raises(UserError):
        planned([system], ["demo/Biology"], setup)


def test_the_searches_of_an_expansion_are_part_of_its_plan(setup: Setup) -> None:
    stages = planned(
        ["hyde(o3-mini, rounds=1, by=bge) → bm25", "search-r1(o3-mini, by=medcpt) → bm25"], ["Biology"], setup
    )
    assert stages["bge"].work.startswith("encodes ") and stages["bge"].fetch == 335e6 * 4
    assert stages["medcpt"].work.startswith("encodes ")
    assert "bge" not in planned(["hyde(author) → bm25"], ["Biology"], setup)


def test_a_stage_that_does_not_plan_itself_has_an_unknown_time(setup: Setup) -> None:
    class Silent(Stage, kind="rerank"):
        name: str = "silent"

    plan = plan_run(["bm25"], ["Biology"], setup=setup)
    system = replace(plan.systems[0], rerankers=(Silent(),))
    [(_, stages)] = stage_plans(replace(plan, systems=(system,)))
    assert [(stage.name, stage.seconds is None) for stage in stages] == [("bm25", False), ("silent", True)]


R2MED = groups()["R2MED"]


def top(setup: Setup) -> list[tuple[r2med.System, list[Plan]]]:
    return list(stage_plans(plan_run([], [], suite="top", setup=setup)))


def test_the_needs_of_the_best_rows_are_known_without_their_data(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "load_dataset", lambda *_: pytest.fail("a dataset was loaded"))
    table = plan_table(top(setup), "cpu")
    assert (len(table.rows), table.heads[1:]) == (
        20,
        ("GPU memory", "LLM calls", "tokens", "hours", "dollars", "downloads"),
    )
    assert all(cell not in ("", None) for row in table.rows for cell in row)
    rows = {str(row[0]): row[1:] for row in table.rows}
    memory, calls, tokens, hours, dollars, downloads = rows["diver → grouprank-32b@100"]
    assert memory == "about 9.6 GB; served: about 77 GB of GPU memory at the server"
    assert (calls, dollars, downloads) == (5 * 876, "your server's", "about 8.0 GB")
    assert isinstance(hours, float) and hours > 0.5
    assert tokens == f"{876 * (100 * 300 + 5 * 500):,} read, {5 * 876 * 400:,} written"
    memory, calls, _, _, dollars, downloads = rows["bm25 → insertrank(deepseek-r1)@100"]
    assert (memory, calls, downloads) == ("none", 9 * 876, "none")
    assert isinstance(dollars, float) and dollars > 1
    assert rows["reasonembed:512"][:2] == ("about 19 GB", 0)


def test_what_is_not_known_is_said_in_its_cell(setup: Setup) -> None:
    agents = ["search-r1(qwen-7b) → bm25", "search-o1(gpt4) → bm25"]
    systems = ["hf:someone/model", *agents, "hyde(gpt4, samples=2, rounds=1) → bm25"]
    plan = plan_run(systems, R2MED, setup=setup.with_settings(base_url="http://127.0.0.1:1/v1"))
    unknown, agent, of_provider, hyde = plan_table(list(stage_plans(plan)), "cpu").rows
    assert (unknown[1], unknown[4]) == ("unknown size of hf:someone/model", "unknown for hf:someone/model")
    assert agent[2] == agent[3] == "unknown: search-r1(qwen-7b) decides" and agent[5] == "your server's"
    assert of_provider[5] == "unknown, as the calls are"
    assert hyde[2] == 4 * 876


@pytest.mark.parametrize(
    ("reranker", "asked"),
    [
        ("listwise(qwen-32b)@35", 1),
        ("listwise(qwen-32b, window=10, step=4, rounds=2)@35", 2),
        ("reasonrank-7b@35", 1),
        ("rankgpt(qwen-32b)@35", 1),
        ("groupwise(qwen-32b, size=8, shuffles=2)@35", 1),
        ("grouprank-7b@35", 1),
        ("pointwise(qwen-32b, samples=2)@35", 1),
        ("setwise(qwen-32b)@35", 1),
        ("rank-r1-7b@35", 1),
        ("rank1-7b@35", 2),
    ],
)
def test_the_calls_of_a_form_are_those_that_its_prompts_would_make(setup: Setup, reranker: str, asked: int) -> None:
    runtime = setup.with_settings(base_url="http://127.0.0.1:1/v1")
    plan = plan_run([f"bm25 → {reranker}"], ["demo/Biology"], setup=runtime)
    [(system, [_, stage])] = stage_plans(plan)
    [asking] = system.asking.values()
    preview = asking.preview(r2med.load("demo/Biology", setup.store), system.runtime)
    # A preview has no answers. So it lacks the call after a thought, and the second round asks as the first.
    assert stage.calls == asked * len(preview.requests)
    assert stage.with_prompts(preview).calls == stage.calls


def test_calls_that_were_answered_are_not_planned(setup: Setup) -> None:
    card = LLMCard(name="judge", model="judge-1", price={"prompt": 1.0, "completion": 1.0})
    asked = tuple(ChatRequest((Message("user", f"question {number}"),), Sampling()) for number in range(8))
    stage = Plan("judge", "asks an LLM", seconds=80.0, calls=16, dollars=1.0)
    known = plan_requests(card, asked, asked[:2])
    left = stage.with_prompts(known)
    assert (left.calls, left.seconds, left.work) == (4, 20.0, "asks an LLM about 4 times")
    assert left.dollars == pytest.approx(2 * (known.dollars or 0)) and left.dollars
    assert (left.prompt_tokens, left.completion_tokens) == (2 * (known.prompt_tokens or 0), 4 * 400)
    assert stage.with_prompts(plan_requests(card, asked, ())).dollars == 0
