"""A Runtime owns what a process holds; two of them do not see each other."""

import os
import pickle

import pytest

from r2med.foundation.net.offline import is_offline
from r2med.foundation.runtime.runtime import Runtime, running
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store


def test_two_runtimes_do_not_see_each_others_objects():
    with Runtime() as one, Runtime() as other:
        assert one.opened("a", object) is one.opened("a", object)
        assert one.opened("a", object) is not other.opened("a", object)
        one.models.get("m", object)
        assert len(one.models) == 1 and len(other.models) == 0


def test_what_was_opened_is_closed_at_the_end():
    closed = []

    class Client:
        def close(self):
            closed.append(self)

    with Runtime() as runtime:
        client = runtime.opened("client", Client)
        assert not closed
    assert closed == [client]


def test_offline_ends_with_the_runtime():
    before = dict(os.environ)
    with Runtime(offline=True):
        assert is_offline()
    assert not is_offline() and dict(os.environ) == before
    with pytest.raises(ZeroDivisionError), Runtime(offline=True):
        _ = 1 // 0
    assert dict(os.environ) == before


def test_a_function_closes_the_runtime_it_made_and_leaves_the_callers_open():
    with Runtime() as mine:
        kept = mine.opened("a", object)
        with running(mine) as given:
            assert given is mine
        assert mine.opened("a", object) is kept
    with running(Setup(depth=7)) as made:
        assert made.setup.depth == 7


def test_a_part_is_opened_once_for_the_same_settings_and_store(tmp_path):
    with Runtime(store=Store(tmp_path)) as runtime:
        part = runtime.part("encoder", object)
        assert runtime.part("encoder", object) is runtime.about("data", model="m").part("encoder", object) is part
        others = (
            runtime.with_settings(depth=7),
            runtime.with_settings(budget=3.0),
            runtime.with_store(Store(tmp_path)),
            runtime.for_a_system(),
        )
        assert all(view.part("encoder", object) is not part for view in others)
        assert runtime.part("encoder", object) is runtime.with_settings(repeat=1).part("encoder", object) is part


def test_an_opened_corpus_is_kept_for_one_search_and_by_a_server_always(tmp_path):
    with Runtime(store=Store(tmp_path)) as runtime:
        assert runtime.index("corpus", object) is not runtime.index("corpus", object)
        with runtime.one_search() as search:
            corpus = search.index("corpus", object)
            with search.about("data").one_search() as inside:
                assert inside.index("corpus", object) is corpus
            assert search.index("corpus", object) is corpus
        with runtime.one_search() as search:
            assert search.index("corpus", object) is not corpus
        live = runtime.with_store(Store(tmp_path, "live"))
        with live.one_search() as search:
            corpus = search.index("corpus", object)
        assert live.index("corpus", object) is corpus


def test_a_view_with_another_store_shares_all_else(tmp_path):
    with Runtime() as runtime:
        view = runtime.with_store(Store(tmp_path))
        assert view.store.root == tmp_path != runtime.store.root
        assert view.opened("a", object) is runtime.opened("a", object)


def test_a_setup_or_its_fields_not_both():
    assert Runtime(depth=7).setup.depth == 7
    with pytest.raises(TypeError):
        Runtime(Setup(), depth=7)


def test_work_that_arrives_in_a_worker_finds_what_earlier_work_loaded():
    first, second = (pickle.loads(pickle.dumps(Runtime(depth=7))) for _ in range(2))  # noqa: S301
    assert first is second and first.setup.depth == 7


def test_a_setup_arrives_on_a_machine_without_its_folders(tmp_path):
    (tmp_path / "texts").mkdir()
    sent = pickle.dumps(Setup(generations=tmp_path / "texts", candidates=tmp_path / "run.trec", depth=7))
    (tmp_path / "texts").rmdir()
    there = pickle.loads(sent)  # noqa: S301
    assert (there.depth, there.recorded, there.generations, there.candidates) == (7, True, None, None)


def test_a_view_with_another_budget_counts_on_its_own(tmp_path):
    with Runtime(budget=5.0) as runtime:
        assert runtime.budget.limit == 5.0
        view = runtime.with_settings(budget=1.0)
        assert view.budget.limit == 1.0 and runtime.budget.limit == 5.0
        assert runtime.with_settings(depth=7).budget is runtime.budget
