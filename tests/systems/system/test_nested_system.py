"""Systems in brackets: they stand where a retriever may stand, print as typed, and bring all their costs and faults."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med import System, UserError, evaluate, load, run, search
from r2med.data.runs.run import Run
from r2med.evaluation.records.record import Record, llms_of
from r2med.foundation.core.spec import parse, printed_system
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.systems.retrieve.fused_rankings import RRF_K
from r2med.systems.system.system_specs import cross_product
from support import chat_server as api
from support.chat_models import setup

TWO = "[hyde(author) → bm25]+[rm3 → bm25(k1=2)]"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("[hyde(author)->bm25]+[ bge -> bge-reranker ]", "[hyde(author) → bm25]+[bge → bge-reranker@100]"),
        ("[bm25]", "bm25"),
        ("[[bm25]]+bge", "bm25+bge"),
        ("[bm25+bge]", "bm25+bge"),
        ("[bm25+bge]+nv", "fuse(bm25+bge)+nv"),
        ("[hyde(author) → bm25]", "hyde(author) → bm25"),
        ("[bm25 → monobert@5] → bge-reranker@3", "bm25 → monobert@5 → bge-reranker@3"),
        ("hyde(author) → [bm25 → monobert@5]", "hyde(author) → bm25 → monobert@5"),
        # The texts of an expansion in brackets are not for a reranker outside.
        ("[hyde(author) → bm25] → monobert@5", "[hyde(author) → bm25] → monobert@5"),
        ("hyde(author) → [bm25 → monobert@5]+bge", "hyde(author) → [bm25 → monobert@5]+bge"),
        ("rm3(by=[bm25(k1=2)]) → bm25", "rm3(by=bm25(k1=2)) → bm25"),
        ("fuse([rm3 → bm25]+bge, weights=1:2)", "fuse([rm3 → bm25]+bge, weights=1:2)"),
        ("lamer(o3-mini, rounds=1, by=[bm25 → monobert@5]) → bm25",) * 2,
        ("[[[rm3 → bm25]+bge → monobert@5]+nv → bge-reranker@9]+bm25",) * 2,
        (
            "hyde(author) → fuse(bm25+[rm3 → bm25], queries=expanded:original)",
            "hyde(author) → fuse(bm25+[rm3 → bm25], queries=expanded:original)",
        ),
    ],
)
def test_brackets_have_one_canonical_form(typed: str, name: str) -> None:
    assert str(System.parse(typed)) == name
    assert System.parse(name) == System.parse(typed)


RETRIEVERS = st.sampled_from(["bm25", "bm25(k1=2)", "bge", "nv"])
EXPANSIONS = st.sampled_from(["", "rm3 → ", "hyde(author) → ", "search-r1(qwen_7b_ins) → "])
RERANKERS = st.lists(st.sampled_from([" → monobert@5", " -> bge-reranker@20"]), max_size=2).map("".join)


def plain(retrievers: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return systems over these retrievers, in brackets."""
    fused = st.lists(retrievers, min_size=1, max_size=3).map("+".join)
    named = st.builds("fuse({}, method=minmax)".format, fused)
    return st.builds("[{}{}]".format, st.one_of(fused, named), RERANKERS)


@given(EXPANSIONS, st.recursive(RETRIEVERS, plain, max_leaves=6), RERANKERS)
def test_every_system_with_brackets_parses_back_from_its_name(before: str, inside: str, after: str) -> None:
    system = System.parse(f"{before}{inside}{after}")
    assert System.parse(system.name) == system and System.parse(system.name).name == system.name
    assert printed_system(parse(system.name)) == system.name
    nested = System.parse(f"[{system.name}]+bm25")
    assert System.parse(nested.name) == nested


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("[bm25", "'[bm25': '[' at position 1 is not closed"),
        ("bge+[bm25", "'[' at position 5 is not closed"),
        ("bm25]", "']' at position 5: its '[' is missing"),
        ("[bm25(k1=2])", "']' at position 11: '(' at position 6 is not closed before it"),
        ("bm25 -> [ ]", "the brackets at position 9 are empty: write a system in them"),
        ("hyde(x → bm25", "'(' at position 5 is not closed"),
        ("[bm25]x", "brackets hold a whole system and stand alone"),
        ("[bm25]@5", "a system in brackets has no depth"),
        ("[hyde(author)]+bm25", "is an expansion: add a retriever"),
        ("[bge-reranker@3]+bm25", "is a reranker: put a retriever before it"),
        ("bm25 → [bge]", "[bge] in 'bm25 → [bge]' follows a retriever"),
        ("bm25 → bge", "bge in 'bm25 → bge' follows a retriever: join retrievers by +"),
        ("hyde(author) → [rm3 → bm25]+bge", "[rm3 → bm25] makes its own queries, so hyde(author) before it"),
        ("rm3(by=[bm25 → monobert@5]) → bm25", "the first search must be BM25"),
        ("[[[bm52]]]+bge", "did you mean bm25"),
        ("[" * 30 + "bm25" + "]" * 30, "more than 20 deep"),
    ],
)
def test_what_cannot_be_read_is_one_line(typed: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        System.parse(typed)
    assert says in str(error.value) and "\n" not in str(error.value)


def ranked(system: str, store: Store, k: int = 20) -> dict[str, list[str]]:
    outcome = System.parse(system, Setup(store=store)).run(load("demo/Biology", store), k)
    return {query: [document for document, _ in ranking] for query, ranking in outcome.run}


def test_whole_systems_are_fused_by_reciprocal_rank(store: Store) -> None:
    parts = [ranked(system, store, 1000) for system in ("hyde(author) → bm25", "rm3 → bm25(k1=2)")]
    for query, found in ranked(TWO, store).items():
        worth: dict[str, float] = {}
        for part in parts:
            for rank, document in enumerate(part[query], 1):
                worth[document] = worth.get(document, 0.0) + 1 / (RRF_K + rank)
        best = sorted(worth, key=lambda document: (np.float32(worth[document]), document), reverse=True)
        assert found == best[: len(found)]


def test_brackets_around_a_system_change_no_score(store: Store) -> None:
    for system in ("hyde(author) → bm25", "rm3 → bm25"):
        alone, in_brackets = ranked(system, store), ranked(f"fuse([{system}])", store)
        assert alone == in_brackets


def test_a_record_has_the_texts_the_keys_and_the_settings_of_the_systems_inside(store: Store, tmp_path: Path) -> None:
    record = evaluate(System.parse(TWO, Setup(store=store)), "demo/Biology", tmp_path, store=store)
    (path,) = (tmp_path / "demo" / "Biology").glob("*.json")
    assert Record.read(path).system == TWO
    assert all(not set(file.name) & set('<>:"/\\|?*[]→') for file in path.parent.iterdir()), "names for Windows, too"
    assert record.generated is not None and llms_of(record) == ["author"]
    texts = [json.loads(line) for line in (path.parent / record.generated.file).read_text().splitlines()]
    assert len(texts) == 8 and all(row["texts"] for row in texts)
    hyde, rm3 = record.settings["retrieve"]["parts"]
    assert (hyde["stage"], hyde["expand"]["stage"], rm3["expand"]["stage"]) == ("system", "hyde", "rm3")
    assert hyde["generations"], "recorded texts may change"
    assert not record.cost_is_known, "what recorded texts cost is not known"
    again = evaluate(System.parse(TWO, Setup(store=store)), "demo/Biology", tmp_path, store=store)
    assert again.created == record.created


def test_the_corpus_of_parts_with_one_retriever_is_prepared_once(store: Store) -> None:
    one, two = (
        evaluate(System.parse(system, Setup(store=store)), "demo/Biology", store=store)
        for system in ("rm3 → bm25", "[rm3 → bm25]+[rocchio → bm25]")
    )
    assert two.stages[0].prepared == one.stages[1].prepared


def answering(kind: str = "") -> api.Step:
    async def step(exchange: api.Exchange) -> None:
        text = json.dumps(exchange.request.body)
        failing = kind and random.Random(text).random() < 0.5
        await (api.refuse(500) if failing else api.answer("rods and cones of the retina"))(exchange)

    return step


def test_calls_costs_and_failures_inside_brackets_are_added_up(tmp_path: Path) -> None:
    system = "[hyde(any) → bm25]+[query2doc(any) → bm25]"
    with api.serve(answering()) as server:
        runtime = setup(server, tmp_path / "store")
        parsed = System.parse(system, runtime)
        assert len(parsed.asking) == 2
        record = evaluate(parsed, "demo/Biology", tmp_path / "out", store=runtime.store)
        assert len(server.requests) == 16
        (stage,) = record.stages
        assert (stage.cost.calls, stage.failures, stage.asked, stage.failure_kinds) == (16, 0, 16, {})
        assert stage.cost.llm_tokens > 0 and stage.cost.seconds > 0
        evaluate(System.parse(f"{system}+bm25(k1=2)", runtime), "demo/Biology", store=runtime.store)
        assert len(server.requests) == 16, "what was answered is not asked again"


def test_failures_inside_brackets_are_counted_and_asked_again_by_the_next_run(tmp_path: Path) -> None:
    with api.serve(answering("some fail")) as server:
        runtime = setup(server, tmp_path / "store", attempts=1)
        parsed = System.parse("[hyde(any) → bm25]+bm25(k1=2)", runtime)
        record = evaluate(parsed, "demo/Biology", tmp_path / "out", store=runtime.store)
        (stage,) = record.stages
        failed = stage.failures
        assert 0 < failed < 8 and stage.failure_kinds == {"server": failed} and len(stage.failed) == failed
        assert record.failures == failed and record.may_improve
        server.otherwise, asked = answering(), len(server.requests)
        repaired = evaluate(parsed, "demo/Biology", tmp_path / "out", store=runtime.store)
        assert len(server.requests) == asked + failed and repaired.failures == 0 and not repaired.may_improve


def test_one_llm_of_the_setup_is_for_every_part_that_names_none() -> None:
    typed = "[hyde → bm25]+fuse([[lamer → bge] → listwise@5]+bm25)"
    [calls] = cross_product([typed], Setup(), llms=["o3-mini"])
    assert printed_system(calls) == ("[hyde(o3-mini) → bm25]+fuse([[lamer(o3-mini) → bge] → listwise(o3-mini)@5]+bm25)")
    system = System.parse("[hyde → bm25]+[bge → listwise]", Setup(llm="o3-mini", depth=7, prompts="short"))
    short = "prompts=short"
    assert system.name == f"[hyde(o3-mini, {short}) → bm25]+[bge → listwise(o3-mini, {short})@7]"


def test_a_preset_can_stand_in_brackets() -> None:
    assert System.parse("[reasoner(o3-mini)]").name == System.parse("reasoner(o3-mini)").name
    assert System.parse("[reasoner(o3-mini)]+bge").name == f"[{System.parse('reasoner(o3-mini)').name}]+bge"


def test_a_question_is_answered_by_systems_in_brackets(store: Store) -> None:
    question = load("demo/Biology", store).queries[0].text
    answer = search("demo/Biology", question, TWO, store=store)
    assert answer.generated and len(answer.passages) == 5
    with pytest.raises(UserError, match="hyde\\(author\\) has texts only for the 8 questions"):
        search("demo/Biology", "another question", TWO, store=store)
    assert search("demo/Biology", "why is the sky blue", "[rm3 → bm25]+bm25(k1=2)", store=store).passages


def test_candidates_can_be_fused_with_a_system(store: Store, tmp_path: Path) -> None:
    run("bm25", "demo/Biology", out=tmp_path, store=store)
    (file,) = (tmp_path / "demo" / "Biology").glob("*.trec.gz")
    system = System.parse(f"run:{file}+[rm3 → bm25]", Setup(store=store))
    assert ranked(system.name, store) == ranked("bm25+[rm3 → bm25]", store)
    with pytest.raises(UserError, match="name the rerankers that follow it"):
        System.parse("[rm3 → bm25]+bm25", Setup(store=store, candidates=file))


def test_notices_and_traces_of_a_part_are_those_of_the_whole(store: Store) -> None:
    dataset = load("demo/Biology", store)
    outcome = System.parse("[rm3 → bm25]+bm25(k1=2)", Setup(store=store)).run(dataset, 5)
    assert isinstance(outcome.run, Run) and outcome.traces == {}
