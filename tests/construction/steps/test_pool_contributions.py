"""What members and views bring into a pool."""

from r2med.construction.items import Candidate, Found
from r2med.construction.steps.pool_contributions import Contribution, contributions


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
