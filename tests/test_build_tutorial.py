"""What docs/build.md says to type works in its order, from the files that it shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from support.processes import Ended

TEXT = (Path(__file__).parent.parent / "docs" / "build.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
COMMANDS = [line for kind, body in BLOCKS if not kind for line in body.splitlines() if line.startswith("r2med ")]


def test_the_tutorial_ends_in_a_reviewed_benchmark(tmp_path: Path, r2med: Callable[..., Ended]) -> None:
    for _, body in BLOCKS:
        if named := re.match(r"# file: (\S+)\n", body):
            (tmp_path / named[1]).parent.mkdir(exist_ok=True)
            (tmp_path / named[1]).write_text(body[named.end() :], encoding="utf-8")
    assert len(COMMANDS) >= 9
    for command in COMMANDS:
        ended = r2med(*shlex.split(command)[1:])
        assert ended.returncode == 0, f"{command}\n{ended.stderr}"
    sheet = (tmp_path / "ward-built" / "ward-questions" / "README.md").read_text(encoding="utf-8")
    assert "| Queries | 3 |" in sheet
    assert "| positive, accepted by people | 100.0% |" in sheet
    assert "Krippendorff’s α" in sheet
