"""What is computed on the first documents of a run, and what on all of it."""

import gzip
from pathlib import Path
from types import SimpleNamespace

from r2med.analysis import unjudged


def test_bpref_counts_relevant_documents_below_rank_100(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "run.trec.gz"
    lines = "".join(f"q Q0 d{rank} {rank} {1000 - rank} x\n" for rank in range(1, 151))
    path.write_bytes(gzip.compress(lines.encode()))
    qrels = {"q": {"d1": 1, "d2": 0, "d120": 1}}
    dataset = SimpleNamespace(queries=[SimpleNamespace(id="q")], qrels=qrels)
    kept = SimpleNamespace(run_file=path)
    material = SimpleNamespace(
        shared=SimpleNamespace(cells={("a", "d"): kept}), recorded={"d": dataset}, values={"d": None}
    )
    table = unjudged.unjudged_table(material)
    assert table is not None
    # trec_eval's bpref: d1 has nothing above it, d120 one of min(2, 1) judged irrelevant documents.
    assert table.rows[0][-1].value == 50.0 * (1 + (1 - 1 / 1))
    monkeypatch.setitem(qrels["q"], "d2", 1)
    assert unjudged.unjudged_table(material).rows[0][-1].value == 100.0
    assert "bpref is computed on the whole run" in table.note
