"""The pages tutorial.md and extend.md, each from its first command to its last."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.fork_server import Command
from support.serving import serving

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = ("tutorial.md", "extend.md")


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def files_written(page: str, folder: Path) -> None:
    for _, body in blocks(page):
        if named := re.match(r"# file: (\S+)\n", body):
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body[named.end() :], encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_way_runs_in_its_order(page: str, tmp_path: Path, r2med: Command) -> None:
    files_written(page, tmp_path)
    commands = [line for kind, body in blocks(page) if not kind for line in body.splitlines()]
    settings = dict(line.removeprefix("export ").split("=") for line in commands if line.startswith("export "))
    for line in commands:
        verb, *words = shlex.split(line)[1:]
        if line.startswith("export "):
            continue
        if verb == "serve":
            with serving(*words, cwd=tmp_path) as server, server.client() as client:
                answer = client.post("/retrieve", json={"queries": ["His hands shake"], "topk": 3})
                assert len(answer.json()["result"][0]) == 3
                assert client.get("/").status_code == 200
                assert server.stop()[0] == 0
            continue
        only = ["--model", "path:nonesuch"] if verb == "advise" else []  # a real one takes minutes on a busy machine
        ended = r2med(verb, *words, *only, **settings)
        assert ended.returncode == 0, f"{line}\n{ended.stderr}"
