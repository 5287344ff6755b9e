"""The functions of Python that serve: each prints its address, answers there, and ends without fault when stopped."""

import json
import signal
from pathlib import Path

import pytest

from support.processes import started
from support.serving import Served, first_line

CANDIDATE = {"question_id": "q", "id": "p", "question": "Why?", "passage": "Because."}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "says", "page"),
    [
        ("serve('demo/Biology', ['bm25'], port=0)", "searches with bm25 · demo/Biology, ", "/health"),
        ("serve_review('candidates.jsonl', port=0)", "candidates.jsonl, 1 candidate · Ctrl-C stops", "/"),
    ],
)
def test_a_function_serves_until_it_is_stopped(call: str, says: str, page: str, tmp_path: Path) -> None:
    (tmp_path / "candidates.jsonl").write_text(json.dumps(CANDIDATE) + "\n")
    code = f"import r2med; r2med.{call}; print('ended')"
    with started(["-c", code], cwd=tmp_path, R2MED_HOME=tmp_path / "home") as process:
        server = Served(process, first_line(process))
        assert says in server.ready
        with server.client() as client:
            assert client.get(page).status_code == 200
        assert server.stop(signal.SIGINT) == (0, "ended\n")
