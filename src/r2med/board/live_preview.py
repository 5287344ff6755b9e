"""Show a board in a browser while records are made: a server on loopback, and a board that follows the records."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from r2med.errors import UserError
from r2med.store import digest

log = logging.getLogger("r2med")

SECONDS = 1.0
"""Between two looks at the records."""

_LIVE = b'<script defer src="assets/live.js"></script>\n</head>'


def state(sources: Iterable[Path]) -> str:
    """Return what changes whenever a record is written, replaced or removed."""
    files = [path for source in sources for path in ([source] if source.is_file() else sorted(source.rglob("*.json")))]
    return digest([[str(path), *_stamp(path)] for path in files])


def _stamp(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:  # replaced between the two looks
        return []
    return [status.st_mtime_ns, status.st_size]


class Preview:
    """A board that is made again when its records change, behind HTTP on this machine alone."""

    def __init__(self, make: Callable[[], object], folder: Path, sources: Iterable[Path], port: int = 0) -> None:
        self._make = make
        self._sources = tuple(sources)
        self._stop = threading.Event()
        self.version = state(self._sources)
        make()
        handler = partial(_Handler, preview=self, directory=str(folder))
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            raise UserError(f"cannot listen on port {port} ({error.strerror}): choose another with --port") from None
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def run(self) -> None:
        """Serve and follow the records until `stop` or Ctrl-C."""
        server = threading.Thread(target=self._server.serve_forever, daemon=True)
        server.start()
        try:
            while not self._stop.wait(SECONDS):
                self.refresh()
        finally:
            self._server.shutdown()
            self._server.server_close()

    def stop(self) -> None:
        """End `run`."""
        self._stop.set()

    def refresh(self) -> None:
        """Make the board again if a record changed; where that cannot be done, say why and leave it as it was."""
        now = state(self._sources)
        if now == self.version:
            return
        try:
            self._make()
        except UserError as error:
            log.warning("the board stays as it was: %s", error)
        self.version = now


class _Handler(SimpleHTTPRequestHandler):
    """The files of the board, and the version that its pages ask for."""

    def __init__(self, *arguments: Any, preview: Preview, **settings: Any) -> None:
        self._preview = preview
        super().__init__(*arguments, **settings)

    def do_GET(self) -> None:
        """Answer with a file, the page with the script that looks for changes, or the version."""
        if self.headers.get("Host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            self.send_error(403, "this preview is for this machine")  # a page elsewhere must not read it by rebinding
        elif self.path.split("?")[0] == "/version.js":
            self._answer(f'board.version("{self._preview.version}");\n'.encode(), "text/javascript")
        elif self.path.split("?")[0] in ("/", "/index.html"):
            page = (Path(self.directory) / "index.html").read_bytes()
            self._answer(page.replace(b"</head>", _LIVE), "text/html")
        else:
            super().do_GET()

    def list_directory(self, path: Any) -> None:
        """Refuse: folders have no page."""
        self.send_error(404)

    def end_headers(self) -> None:
        """Forbid keeping anything: what was read may be made again."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def _answer(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: a line for each file helps nobody."""
