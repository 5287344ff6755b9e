"""A live system answers one question as a run does, keeps nothing of it, and tells what failed."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from r2med import System, UserError, load
from r2med.data import Corpus, Query
from r2med.foundation.runtime.runtime import Runtime
from support.chat_server import answer, refuse
from support.datasets import dataset_of

DOCUMENTS = [
    ("gluten", "Gluten harms the small bowel in coeliac disease."),
    ("iron", "Iron deficiency has many causes; bread is none of them."),
    ("knee", "A swollen knee after a fall."),
    ("face", "Angioedema of the face and the lips."),
]
SHORTEST_FIRST = (
    "class Shortest:\n"
    "    revision = '1'\n"
    "    def predict(self, pairs): return [-float(len(text)) for _, text in pairs]\n"
)


@pytest.fixture
def dataset():
    return dataset_of(Corpus.of(DOCUMENTS), [Query("0", "swollen after bread")])


@pytest.fixture
def shortest(tmp_path, monkeypatch):
    """A cross-encoder of the user's own, by its name."""
    (tmp_path / "shortest_first.py").write_text(SHORTEST_FIRST)
    monkeypatch.chdir(tmp_path)
    return "py:shortest_first:Shortest"


@pytest.fixture
def setup(chat_server, marked_keys, store):
    return Runtime(base_url=chat_server.address, store=store, attempts=1, deadline=30)


def ranking(run):
    [(_, pairs)] = list(run)
    return [document for document, _ in pairs]


def files(store):
    return sorted(path for path in store.root.rglob("*") if path.is_file() and "scratch" not in path.parts)


@pytest.mark.parametrize("spec", ["bm25", "rm3 → bm25", "bm25+bm25(k1=2)", "bm25 → py:shortest_first:Shortest@3"])
def test_a_question_is_answered_as_a_run_answers_it(dataset, store, shortest, spec):
    system = System.parse(spec)
    whole = system.run(dataset, 4)
    live = system.live(dataset).answer("swollen after  bread", 4)
    assert list(live.run) == list(whole.run)
    assert len(live.reranked) == len(system.rerankers)


def test_of_a_question_nothing_is_kept(dataset, store, setup, shortest):
    live = System.parse(f"lamer(some-model) → bm25 → {shortest}@3", setup).live(dataset)
    before = files(store)
    outcome = live.answer("a question that is nobody's business", 3)
    assert outcome.expansion.queries[0].generated
    assert files(store) == before
    opened = live.system.runtime.store
    kept = opened.memo_file("journal", "chat").parent
    assert list(kept.iterdir())
    opened.close()
    assert not kept.exists()


def test_two_systems_of_one_expansion_that_are_asked_at_once_ask_the_llm_once(dataset, store, setup, chat_server):
    chat_server.otherwise = answer("iron", delay=0.3)
    together = store.with_policy("live")
    specs = ("hyde(some-model) → bm25", "hyde(some-model) → bm25(k1=2)")
    systems = [System.parse(spec, setup).with_store(together).live(dataset) for spec in specs]
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda system: system.answer("why so pale?", 1), systems))
    assert [ranking(outcome.run) for outcome in outcomes] == [["iron"], ["iron"]]
    assert len(chat_server.requests) == 1
    assert outcomes[0].expansion.cost.calls == outcomes[1].expansion.cost.calls == 1


def test_an_llm_that_fails_is_told_and_the_question_is_searched_as_it_is(dataset, store, setup, chat_server):
    live = System.parse("hyde(some-model) → bm25 → listwise(some-model)@3", setup).live(dataset)
    assert not chat_server.requests
    chat_server.script = [answer("", finish="stop")]
    chat_server.otherwise = answer("no order")
    outcome = live.answer("bread, iron and a knee", 4)
    assert (outcome.expansion.failures, outcome.expansion.failure_kinds) == (1, {"empty": 1})
    assert outcome.reranked[0].failure_kinds == {"invalid": 1}
    assert ranking(outcome.run) == ["iron", "knee"]


def test_an_endpoint_that_cannot_be_used_is_a_user_error(dataset, store, setup, chat_server):
    chat_server.otherwise = refuse(401)
    with pytest.raises(UserError, match="401"):
        System.parse("hyde(some-model) → bm25", setup).live(dataset).answer("bread", 4)


def test_a_budget_holds_over_all_questions(dataset, store, chat_server, marked_keys):
    setup = Runtime(base_url=chat_server.address, store=store, budget=0.048)
    live = System.parse("hyde(o3-mini) → bm25", setup).live(dataset)
    told = [live.answer(f"question {number}", 1).expansion.failure_kinds for number in range(40)]
    assert told[-1] == {"budget": 1}
    assert len(chat_server.requests) == told.index({"budget": 1})


def test_recorded_texts_answer_the_questions_of_their_dataset_and_no_others(store):
    dataset = load("demo/MedQA-Diag", store)
    live = System.parse("hyde(author) → bm25").live(dataset)
    whole = System.parse("hyde(author) → bm25").run(dataset, 5)
    question = dataset.queries[3]
    assert list(live.answer(question.text, 5).run) == [pair for pair in whole.run if pair[0] == question.id]
    with pytest.raises(UserError, match=r"only for the .* questions of demo/MedQA-Diag"):
        live.answer("a question of my own", 5)


def test_a_run_file_cannot_answer_new_questions(dataset, store, tmp_path):
    (tmp_path / "some.trec").write_text("0 Q0 iron 1 1.0 tag\n")
    with pytest.raises(UserError, match="cannot search for another question"):
        System.parse(f"run:{tmp_path / 'some.trec'}").live(dataset)


def test_a_live_question_is_searched_by_its_parts_as_in_a_run(dataset, store, setup, chat_server):
    chat_server.otherwise = answer('["gluten bowel", "iron deficiency", "bread"]')
    system = System.parse("queries(any) → bm25", setup)
    live = system.live(dataset)
    before = files(store)
    outcome = live.answer("swollen after bread", 10)
    assert [text for part, _ in outcome.expansion.queries[0].parts for text in [part.query.text]] == [
        "swollen after bread",
        "gluten bowel",
        "iron deficiency",
        "bread",
    ]
    assert files(store) == before, "nothing of a question is kept"
    run = system.run(dataset, 10).run
    assert ranking(outcome.run) == ranking(run)
    assert set(ranking(run)) == {"gluten", "iron", "knee"}
