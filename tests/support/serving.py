"""`r2med serve` as a user runs it, in a process of its own; and a client like that of Search-R1's agents."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.processes import PATIENCE, started


class SearchR1Client:
    """Asks and reads as Search-R1 does: no headers but the usual ones, no check of the status, one batch a turn."""

    def __init__(self, client: httpx.Client, url: str, topk: int = 3) -> None:
        self._client = client
        self._url = url
        self._topk = topk

    def batch_search(self, queries: list[str]) -> list[str]:
        payload = {"queries": queries, "topk": self._topk, "return_scores": True}
        results = self._client.post(self._url, json=payload).json()["result"]
        return [self._written(result) for result in results]

    @staticmethod
    def _written(result: list[dict[str, Any]]) -> str:
        out = ""
        for rank, item in enumerate(result, start=1):
            lines = item["document"]["contents"].split("\n")
            title, text = lines[0], "\n".join(lines[1:])
            out += f"Doc {rank}(Title: {title}) {text}\n"
        return out


@dataclass
class Served:
    """A server that is ready."""

    process: subprocess.Popen[str]
    ready: str

    @property
    def url(self) -> str:
        return self.ready.split("/ ")[0].replace("0.0.0.0", "127.0.0.1")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, **settings: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False, **settings)

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and what was written besides the ready line."""
        self.process.send_signal(sign)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out + err


@contextmanager
def serving(*arguments: str | Path, limits: Mapping[str, int] | None = None, **changes: str | Path) -> Iterator[Served]:
    """Yield a server that printed its line; it is killed at the end. `limits` are other values of its constants."""
    program = ["-c", _WITH_LIMITS, json.dumps(limits)] if limits else ["-m", "r2med"]
    with started([*program, "serve", *arguments, "--port", "0"], **changes) as process:
        yield Served(process, first_line(process))


_WITH_LIMITS = """
import json, sys
from r2med.server import limits
for name, value in json.loads(sys.argv.pop(1)).items():
    assert hasattr(limits, name)
    setattr(limits, name, value)
from r2med.cli import main
main()
"""


def first_line(process: subprocess.Popen[str]) -> str:
    """Return what a server prints when it is ready."""
    assert process.stdout is not None and process.stderr is not None
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        if select.select([process.stdout], [], [], 0.2)[0]:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            return line.strip()
    raise AssertionError("the server was not ready in time")


GATED_MODEL = '''
"""A model of a user's whose queries wait until a file is there."""
import os, pathlib, sys, time
import numpy as np

sys.modules["torch"] = None  # as if it were not installed: to import it takes longer than all that is tested

class Gated:
    def encode_corpus(self, texts, **_):
        return np.eye(len(texts), 8, dtype=np.float32)

    def encode_queries(self, texts, **_):
        gate = pathlib.Path(os.environ["GATE"])
        if any("wait" in text for text in texts):
            gate.with_suffix(".reached").touch()
            while not gate.exists():
                time.sleep(0.01)
        if any("fail" in text for text in texts):
            raise RuntimeError("secret internals")
        return np.eye(len(texts), 8, dtype=np.float32)
'''


def gated_model(folder: Path) -> dict[str, str]:
    """Write the model; return the environment that finds it. It opens when `folder/gate` is there."""
    (folder / "gated_model.py").write_text(GATED_MODEL)
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {"GATE": str(folder / "gate"), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
