"""Read parts of a run file without reading the whole file."""

import numpy as np
import pytest

from r2med.core.errors import UserError
from r2med.retrieve.run import IdTable, Run
from r2med.retrieve.trec import write_run
from r2med.retrieve.written_run import WrittenRun


@pytest.fixture
def written(tmp_path):
    documents = IdTable(tuple(sorted(["__proto__", "a b", "d", "d1", "Q0", "100%25"])))
    rows = np.array([[0, 1, 2, 3], [3, 2, -1, -1], [5, 4, 3, 2]], dtype=np.int32)
    scores = np.array([[4, 3, 2, 1], [2, 1, 0, 0], [9, 8.5, 7, 0.125]], dtype=np.float32)
    run = Run(("1", "11", "q 2"), rows, scores, documents)
    write_run(run, tmp_path / "run.trec.gz")
    return run, tmp_path / "run.trec.gz"


@pytest.mark.parametrize("order", [["1", "11", "none", "q 2"], ["q 2", "11", "1"]])
def test_tops_and_ranks_are_those_of_the_whole_file(written, order):
    run, path = written
    part = WrittenRun(path, order)
    for query, ranking in run:
        assert part.top(query, 3) == ranking[:3]
        assert part.top(query, 100) == ranking
        assert {d: part.rank(query, d) for d, _ in ranking} == {d: i for i, (d, _) in enumerate(ranking, 1)}
    assert part.rank("1", "nowhere") == 0
    assert part.top("none", 5) == []
    assert part.rank("none", "d") == 0


def test_a_missing_or_damaged_file_gives_a_one_line_error(written, tmp_path):
    _, path = written
    path.write_bytes(path.read_bytes()[:-9])
    for bad in (path, tmp_path / "none.trec.gz"):
        with pytest.raises(UserError, match="run the system again"):
            WrittenRun(bad, ["1"])
