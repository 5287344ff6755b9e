"""What members and views bring into a pool, and how many positives nobody found."""

import numpy as np
import pytest

from r2med.construction.items import Candidate, Found
from r2med.construction.steps.pool_coverage import Contribution, Coverage, LinkedChunks, contributions


def candidate(number, *found):
    pairs = [each.split("/") for each in found]
    return Candidate(question="q", chunk=str(number), found=tuple(Found(member=m, view=v, rank=1) for m, v in pairs))


def test_what_one_alone_contributed_is_told():
    pool = [
        candidate(1, "bm25/query", "bm25/answer"),
        candidate(2, "bm25/query", "bge/query"),
        candidate(3, "bge/reasoning"),
    ]
    assert contributions(pool) == {
        "members": {"bge": Contribution(2, 1), "bm25": Contribution(2, 1)},
        "views": {"answer": Contribution(1, 0), "query": Contribution(2, 1), "reasoning": Contribution(1, 1)},
    }


def captures(chances, positives=2000, alike=0.0):
    """Return the positives that members found, each with its chance; and how many nobody found."""
    random = np.random.default_rng(0)
    easy = random.random(positives)
    seen = [
        [name for name, chance in zip("abcd", chances, strict=False) if random.random() < chance * (1 - alike * hard)]
        for hard in easy
    ]
    found = [candidate(number, *(f"{name}/query" for name in names)) for number, names in enumerate(seen) if names]
    return found, positives - len(found)


def test_members_that_search_apart_tell_about_how_many_nobody_found():
    found, missed = captures([0.6, 0.5, 0.4])
    coverage = Coverage.of(found)
    assert coverage.at_least == pytest.approx(missed, rel=0.2)
    assert coverage.leave_one_out > coverage.at_least  # it is that of a pool with one member fewer


def test_members_that_search_alike_make_the_lower_bound_lower():
    found, missed = captures([0.9, 0.8, 0.8], alike=1.0)
    assert 0 < Coverage.of(found).at_least <= missed * 1.1


def test_one_member_tells_nothing_of_what_is_missing():
    assert Coverage.of([]).leave_one_out is Coverage.of([]).at_least is None
    alone = Coverage.of([candidate(1, "bm25/query")])
    assert (alone.leave_one_out, alone.at_least) == (None, None)
    assert alone.shared == {"bm25": (1, 0)}


def test_what_the_source_links_tells_what_a_committee_retrieves_and_would_without_a_member():
    pool = [
        candidate(1, "source/link", "bm25/query"),
        candidate(2, "source/link", "bm25/query", "bge/answer"),
        candidate(3, "source/link"),
        candidate(4, "bge/query"),
    ]
    assert LinkedChunks.of(pool) == LinkedChunks(3, 2, {"bm25": 1, "bge": 2})
    assert LinkedChunks.of([]) == LinkedChunks(0, 0, {})


def test_a_bound_of_nothing_is_zero_without_a_sign() -> None:
    assert f"{Coverage(2, {'a': (2, 2), 'b': (2, 2)}, 0, 2).at_least:.0f}" == "0"
