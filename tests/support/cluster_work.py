"""Models and work that the nodes of a test's cluster can import."""

import errno
import os
import signal
import socket
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from r2med.foundation.core.errors import UserError


class Letters:
    """Counts letters; says which shards it encoded, and where."""

    revision = "1"

    def encode(self, texts):
        if log := os.environ.get("R2MED_TEST_LOG"):
            with Path(log).open("a") as file:
                file.write(f"{os.getpid()} {len(texts)} {texts[0][:40]!r}\n")
            time.sleep(0.3)  # long enough to be killed in the middle
        counts = [Counter(text.lower()) for text in texts]
        return [[count[letter] / 7 for letter in "aeiourstn"] for count in counts]


def refused_look_up(item, store):
    """Return why the address of another machine cannot be looked up; empty if it can."""
    try:
        socket.getaddrinfo("r2med.example", 443)
    except UserError as error:
        return {}, str(error)
    except OSError:
        return {}, ""
    return {}, ""


class SharedWords:
    """Scores a pair by the words that both have."""

    revision = "1"

    def predict(self, pairs):
        return [len({*query.split()} & {*document.split()}) + len(document) / 1e5 for query, document in pairs]


@dataclass(frozen=True)
class Squares:
    """Squares numbers, but dies, has a full disk or another model as it was told."""

    dies_at: int = -1
    mark: str = ""
    """A file that the first worker that dies leaves, so that the next does not; empty: all die."""
    full: str = ""
    """The end of R2MED_HOME of the node whose disk is full."""
    differs: str = ""
    """The end of R2MED_HOME of the node that has another model."""
    seconds: float = 0.0

    def __call__(self, item, store):
        time.sleep(self.seconds)
        home = os.environ.get("R2MED_HOME", "")
        if self.full and home.endswith(self.full):
            raise OSError(errno.ENOSPC, "No space left on device")
        if item == self.dies_at and not (self.mark and Path(self.mark).exists()):
            if self.mark:
                Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        is_other = self.differs and home.endswith(self.differs)
        return {"dtype": "bfloat16" if is_other else "float32"}, item * item
