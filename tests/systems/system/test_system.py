"""A system prints as its own name and parses back; what cannot be read is one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med import System, UserError, evaluate, load
from r2med.data import Corpus, Dataset, Qrels, Query, names
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.net.offline import is_offline
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import stage_of
from r2med.foundation.store import Store
from r2med.systems.retrieve.bm25 import BM25


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("bm25", "bm25"),
        (" bm25 ( ) ", "bm25"),
        ("bm25(k1=0.9)", "bm25"),
        ("bm25(b=0.75,k1=1.2)", "bm25(k1=1.2, b=0.75)"),
        ("bm25(scorer=lucene)", "bm25(scorer=lucene)"),
        ("hyde(author)->bm25", "hyde(author) → bm25"),
        ("lamer(gpt4) → bm25(scorer = lucene)", "lamer(gpt4) → bm25(scorer=lucene)"),
        ("hyde(o3-mini,query=keep,samples=3)->bm25", "hyde(o3-mini, samples=3, query=keep) → bm25"),
        ("lamer(qwq-32b, rounds=2, by=minilm) → bm25", "lamer(qwq-32b, rounds=2, by=minilm) → bm25"),
        ("rm3(terms=20) → bm25", "rm3(terms=20) → bm25"),
        ("bm25 + bm25(k1=2.0)", "bm25+bm25(k1=2)"),
        ("fuse(bm25+bm25(k1=2.0))", "bm25+bm25(k1=2)"),
        (
            "hyde(author) -> fuse(bm25 + bm25(k1=2.0,b=1.0), weights=1:3, method=zscore)",
            "hyde(author) → fuse(bm25+bm25(k1=2, b=1), method=zscore, weights=1:3)",
        ),
    ],
)
def test_a_spec_has_one_canonical_name(spec, name):
    assert str(System.parse(spec)) == name
    assert str(System.parse(name)) == name


@given(
    st.sampled_from(["published", "lucene"]),
    st.floats(0, 100, allow_nan=False),
    st.floats(0, 1),
    st.sampled_from(["", "hyde(author)", "search-r1(qwen_7b_ins)", "rocchio(terms=5)"]),
)
def test_every_system_parses_back_from_its_name(scorer, k1, b, expander):
    before = stage_of(parse_stage(expander)[0], "expand") if expander else None
    system = System(BM25(scorer=scorer, k1=k1, b=b), before)
    assert System.parse(system.name) == system


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("bm52", "did you mean bm25"),
        ("", "cannot read"),
        ("bm25(", "'(' at position 5 is not closed"),
        ("bm25(k2=1)", "did you mean k1"),
        ("bm25(k1=high)", "not a number"),
        ("bm25(scorer=lucent)", "did you mean lucene"),
        ("hide(author) → bm25", "did you mean hyde"),
        ("hyde → bm25", "needs the name of an LLM"),
        ("hyde(author)", "is an expansion"),
        ("a → b → c", "no expansion or retriever 'a'"),
        ("bm25 → b → c", "no reranker 'b'"),
        ("bm25 → hyde(author)", "put it before the retriever"),
        ("hyde(author) → rm3 → bm25", "rm3 in 'hyde(author) → rm3 → bm25' is a second expansion"),
        ("bm25 → listwise(a)+listwise(b)", "rerankers cannot be fused"),
        ("listwise(o3-mini)", "is a reranker: put a retriever before it"),
        ("bm25@10", "only rerankers have a depth"),
        ("hyde(author)@10 → bm25", "only rerankers have a depth"),
        ("bm25 → listwise(o3-mini)@0", "depth must be 1 or more"),
        ("bm25 → listwise", "needs the name of an LLM"),
        ("reasoner", "needs the name of an LLM"),
        ("reasoner(o3-mini, dens=nv)", "did you mean dense"),
        ("reasoner(o3-mini, dense={dense})", "braces"),
    ],
)
def test_what_cannot_be_read_is_one_line(spec, says):
    with pytest.raises(UserError) as error:
        System.parse(spec)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def tiny(queries, documents, qrels):
    return Dataset("tiny", tuple(queries), Corpus.of(documents), Qrels(qrels))


def test_a_query_s_excluded_documents_are_left_out_and_replaced(tmp_path):
    documents = [("a", "fever fever fever"), ("b", "fever fever"), ("c", "fever")]
    dataset = tiny([Query("1", "fever", excluded=("a", "unknown"))], documents, {"1": {"b": 1}})
    outcome = System.parse("bm25", Setup(store=Store(tmp_path))).run(dataset, k=2)
    assert [[d for d, _ in ranking] for _, ranking in outcome.run] == [["b", "c"]]


def test_gold_answers_and_body_systems_do_not_reach_the_search(tmp_path):
    dataset = tiny([Query("1", "swelling", answer="fever", body_system="fever")], [("a", "fever")], {"1": {"a": 1}})
    outcome = System.parse("bm25", Setup(store=Store(tmp_path))).run(dataset, k=5)
    assert [ranking for _, ranking in outcome.run] == [[]]


def test_a_query_without_a_recorded_text_is_searched_as_it_is_and_counted(tmp_path):
    folder = tmp_path / "set"
    (folder / "hyde" / "author").mkdir(parents=True)
    (folder / "hyde/author/query_with_hydoc.jsonl").write_text('{"id": "1", "hy_doc": " "}\n')
    queries = [Query("1", "fever"), Query("2", "cough")]
    dataset = Dataset("set", queries, Corpus.of([("a", "fever"), ("b", "cough")]), Qrels({"1": {"a": 1}}), None, folder)
    outcome = System.parse("hyde(author) → bm25").run(dataset, k=5)
    assert outcome.expansion.failures == 2
    assert [ranking[0][0] for _, ranking in outcome.run] == ["a", "b"]


def test_a_model_without_recorded_texts_is_one_line_that_lists_those_there_are():
    with pytest.raises(UserError, match=r"did you mean author\?\): it has author"):
        evaluate("hyde(auhtor) → bm25", "demo/Biology")
    with pytest.raises(UserError, match="come with the demo and R2MED only"):
        evaluate("lamer(author) → bm25", "demo/Biology")


def test_the_demo_shows_the_phenomenon():
    """On clinical tasks the words of the question mislead; the text that names the answer finds the evidence."""
    for name in names("demo"):
        dataset = load(name)
        plain = evaluate("bm25", dataset).mean["nDCG@10"]
        expanded = evaluate("hyde(author) → bm25", dataset).mean["nDCG@10"]
        assert expanded > plain + 0.3, name
        if dataset.card.task != "Q&A reference":
            assert plain < 0.25, name


class Watching(BM25):
    """BM25 that notes whether the network is blocked while it is asked for its key and while it searches."""

    def key(self, dataset, runtime):
        assert is_offline() == runtime.setup.offline
        return super().key(dataset, runtime)

    def check(self, datasets, runtime):
        assert is_offline() == runtime.setup.offline
        super().check(datasets, runtime)

    def search(self, dataset, queries, k, runtime):
        assert is_offline() == runtime.setup.offline
        return super().search(dataset, queries, k, runtime)


@pytest.mark.parametrize("offline", [True, False])
def test_a_system_whose_setup_is_offline_works_offline_by_itself(offline: bool, store: Store) -> None:
    system, dataset = System(Watching(), runtime=Runtime(offline=offline, store=store)), load("demo/Biology", store)
    system.check([dataset])
    assert system.stage_keys(dataset)
    assert len(system.run(dataset, 3).run.queries) == len(dataset.queries)
    assert len(system.live(dataset).answer("Why do we sleep?", 3).run.queries) == 1
    assert not is_offline()
