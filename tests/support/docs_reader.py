"""A reader of the docs: types what a page says, with stand-ins where the page needs more than the demo."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import httpx

from support.docs_assumed import Assumed
from support.docs_pages import AS_TYPED, WITH_STAND_INS, Line
from support.docs_stand_ins import VARIABLES, WORDS, use_hub_cache
from support.fork_server import ForkServer, Running
from support.keys import KEY
from support.processes import PATIENCE, Ended, environment, wait_for

PROGRAMS = ("r2med", "curl", "export", "cp")
"""What the reader can type. All other programs of the docs are only shown."""
PORTS = {"serve": 8000, "review": 8070}
"""Where the servers of r2med are found if no port is given."""
ENDS_BY_ITSELF = {"export", "import", "show"}
"""With these `r2med review` shows no page."""


def program_of(text: str) -> str:
    """Return the program of a line, without the variables before it."""
    return re.sub(r"^(?:[A-Z_0-9]+=\S+ )*", "", text).split(" ")[0]


class Started(Protocol):
    """A command that was started and may run on."""

    def has_ended(self) -> bool:
        """Return True if it has ended."""

    def ended(self) -> Ended:
        """Wait for its end."""


class Terminal(Protocol):
    """Where commands of r2med are typed."""

    def run(self, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Ended:
        """Run `r2med WORDS` to its end."""

    def start(self, words: Sequence[str], folder: Path, variables: Mapping[str, str], log: Path) -> Started:
        """Start `r2med WORDS`. The log gets the number of its process, and then what it prints."""


@dataclass(frozen=True)
class ForkedTerminal:
    """A terminal in the environment of the tests. The start of a command takes no time there."""

    server: ForkServer
    hub: str
    """The hub's cache."""

    def run(self, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Ended:
        return self.server.run(*words, cwd=folder, fault=partial(use_hub_cache, self.hub), **variables)

    def start(self, words: Sequence[str], folder: Path, variables: Mapping[str, str], log: Path) -> Running:
        return self.server.start(*words, cwd=folder, fault=partial(_tell_lines, log), **variables)


@dataclass
class Reader:
    """Somebody at a terminal: a folder, variables that the page exported, and servers that were started."""

    folder: Path
    terminal: Terminal
    places: Mapping[str, str]
    """Where the stand-ins are, by the names in braces of the tables."""
    assumed: Assumed = field(default_factory=Assumed)
    exported: dict[str, str] = field(default_factory=dict)
    served: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The server that was started last at each port."""
    typed: set[str] = field(default_factory=set)

    def prepare(self) -> None:
        """Make what the page assumes."""
        for name, text in self.assumed.files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        for text in self.assumed.before:
            if text.startswith("r2med "):
                self.type(Line(WITH_STAND_INS, text))
            else:
                self.shell(text.format_map(self.places))

    def type(self, line: Line) -> None:
        """Do what a line says, and fail if that fails."""
        ended = self.typed_line(line)
        expected = 2 if line.text == self.assumed.stops and line.text not in self.typed else 0
        assert ended is None or ended.returncode == expected, (
            f"{line.text}\nas {self.meant(line)}\n{ended.stdout}\n{ended.stderr}"
        )
        self.typed.add(line.text)

    def typed_line(self, line: Line) -> Ended | None:
        """Do what a line says. Return how its command ended, or None if another program or a server did it."""
        text = self.meant(line)
        variables = self.exported if line.kind == AS_TYPED else self.variables()
        program = program_of(text)
        words = shlex.split(text.partition(f"{program} ")[2])
        if program == "export":
            named = dict(word.split("=", 1) for word in words if "=" in word)  # a shell would split $(…) no further
            self.exported |= named if line.kind == AS_TYPED else dict.fromkeys(named, KEY)
        elif program == "curl":
            self.curl(text)
        elif program == "cp":
            self.shell(text)
        elif _serves(words):
            port = int(words[words.index("--port") + 1]) if "--port" in words else PORTS[words[0]]
            self.served[port] = tuple(words)
            self.look(port)
        else:
            before = dict(word.split("=", 1) for word in text.partition("r2med ")[0].split())
            return self.terminal.run(words, self.folder, variables | before)
        return None

    def meant(self, line: Line) -> str:
        """Return what is typed for a line: with stand-ins where it needs them."""
        text = line.text
        if line.kind == AS_TYPED:
            return text
        for pattern, instead in [*self.assumed.words.items(), *WORDS.items()]:
            if re.search(pattern, text):
                given = instead(self.folder) if callable(instead) else instead.format_map(self.places)
                text = re.sub(pattern, given, text)
        return text

    def variables(self) -> dict[str, str]:
        return {name: value.format_map(self.places) for name, value in VARIABLES.items()} | self.exported

    def shell(self, text: str) -> str:
        settings, pipe = environment(**self.variables()), subprocess.PIPE
        done = subprocess.run(["bash", "-c", text], cwd=self.folder, env=settings, stdout=pipe, text=True, check=True)
        return done.stdout

    def look(self, port: int) -> None:
        """Open the page of a server. Where people review, one of them reviews everything."""
        token = self.exported.get("R2MED_SERVE_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with self.serving(port) as url, httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
            answer = client.get("/", headers=headers)
            assert answer.status_code == 200, f"r2med {shlex.join(self.served[port])}: {answer.text}"
            if self.served[port][0] == "review":
                _review(client)

    def curl(self, text: str) -> None:
        """Ask the server at the port that is named."""
        (port,) = re.findall(r"http://[^/\s]+:(\d+)/", text)
        with self.serving(int(port)) as url:
            here = re.sub(r"http://[^/\s]+/", url, text)
            answer = self.shell(here.replace("curl", "curl --silent --show-error --fail --noproxy '*'", 1))
        assert json.loads(answer) and '"passages":[]' not in answer, answer

    @contextmanager
    def serving(self, port: int) -> Iterator[str]:
        """Start the server of a port, at a free one, and give its address. At the end it is stopped."""
        log = self.folder / "served.txt"
        log.unlink(missing_ok=True)
        words = [*self.served[port], "--port", "0"]
        running = self.terminal.start(words, self.folder, self.variables(), log)
        wait_for(lambda: running.has_ended() or bool(log.exists() and re.search(r"http.*\n", log.read_text())))
        if running.has_ended():
            raise AssertionError(f"r2med {shlex.join(words)}\n{running.ended().stderr}")
        process, *printed = log.read_text(encoding="utf-8").split()
        try:
            yield next(word for word in printed if word.startswith("http")).replace("0.0.0.0", "127.0.0.1")
        finally:
            os.kill(int(process), signal.SIGTERM)
        ended = running.ended()
        assert ended.returncode == 0, f"r2med {shlex.join(words)}\n{ended.stderr}"


def _serves(words: list[str]) -> bool:
    return words[0] == "serve" or (words[0] == "review" and not ENDS_BY_ITSELF & {*words})


def _review(client: httpx.Client) -> None:
    """Review every item of each kind."""
    site = client.get("/data/site.js").text
    for kind in json.loads(json.loads(site[site.index(", ") + 2 : site.rindex(")")]))["kinds"]:
        who = {"name": "Ann", "kind": kind["name"]}
        best = kind["scale"][0]
        answers = {point["name"]: best["word"] for point in kind["points"]}
        said = {"answers": answers}
        while item := client.post("/view", json=who).json()["item"]:
            kept = client.post("/decide", json={**who, "item": item["token"], "seen": item["revision"], **said})
            assert kept.status_code == 200, kept.text


def _tell_lines(log: Path) -> None:
    """Write the number of this process into a file, and then what it prints."""
    sys.stdout = log.open("w", encoding="utf-8", buffering=1)
    print(os.getpid())
