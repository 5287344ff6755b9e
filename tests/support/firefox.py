"""A real Firefox over its own WebDriver BiDi, where one is installed: nothing between it and the test."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("firefox-esr", "firefox")
SECONDS = 60.0


class Firefox:
    """One tab. Errors and warnings of its console, and every request, are kept."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self._tab = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method: str, **params: Any) -> Any:
        """Return the result of a command; what happens meanwhile is kept."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=SECONDS))
            if message.get("id") == self._number:
                assert message["type"] == "success", message
                return message["result"]
            self._keep(message.get("method"), message.get("params", {}))

    def open(self, address: str) -> None:
        """Open an address and wait until it is loaded."""
        self.send("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of JavaScript, or its promise, comes to."""
        target = {"context": self._tab}
        made = self.send("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert made["type"] == "success", made
        return made["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true."""
        poll = f"(({condition}) ? resolve(true) : setTimeout(look, 20))"
        assert self.evaluate(f"new Promise((resolve) => {{ const look = () => {poll}; look(); }})")

    def press(self, key: str) -> None:
        """Press a key."""
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.send("input.performActions", context=self._tab, actions=[{"type": "key", "id": "keys", "actions": keys}])

    def _keep(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "log.entryAdded" and params["level"] in ("error", "warn"):
            self.faults.append(str(params["text"]))
        if method == "network.beforeRequestSent":
            self.requests.append(params["request"]["url"])


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Yield a Firefox with a profile of its own; without one the test is skipped."""
    client = pytest.importorskip("websockets.sync.client")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: install one of {', '.join(BROWSERS)}")
    profile.mkdir()
    words = [path, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(found[0] for line in process.stderr if (found := re.search(r"ws://\S+", line)))
            with client.connect(f"{address}/session", max_size=None) as socket:
                yield Firefox(socket)
        finally:
            process.terminate()
