"""Many systems on many datasets: what cannot run is told of, and a suite goes on without it."""

from pathlib import Path

import pytest

from r2med import System, UserError
from r2med.results.batch import Batch
from r2med.store import Store


def test_one_that_cannot_run_does_not_stop_a_suite(tmp_path: Path) -> None:
    batch = Batch(tmp_path / "out", store=Store(tmp_path / "store"), keep_going=True)
    systems = [System.parse("bm25"), System.parse("hyde(nobody) → bm25"), System.parse("nv")]
    good, bad, untrusted = batch.evaluate(systems, ["demo/Biology", "no-such-set"])
    assert good[0].record and good[0].record.mean["nDCG@10"] > 0
    assert good[1].record is None and "no dataset or folder 'no-such-set'" in good[1].error
    assert bad[0].record is None and "nobody" in bad[0].error
    assert "--trust-remote-code" in untrusted[0].error
    assert not good[0].reused and batch.evaluate(systems[:1], ["demo/Biology"])[0][0].reused


def test_without_a_suite_the_first_error_is_raised_before_anything_is_evaluated(tmp_path: Path) -> None:
    said: list[str] = []
    batch = Batch(tmp_path / "out", store=Store(tmp_path / "store"), announce=said.append)
    with pytest.raises(UserError, match="nobody"):
        batch.evaluate([System.parse("bm25"), System.parse("hyde(nobody) → bm25")], ["demo/Biology"])
    assert not said
