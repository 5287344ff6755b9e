"""The application of `r2med board --serve`: a board that is updated when its records change."""

from __future__ import annotations

import threading
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response

from r2med.publication.site.board_folder import FILE_NAMES
from r2med.publication.site.live_preview import LiveBoard
from r2med.server.http_app import guarded_app
from r2med.server.http_server import GuardedServer, Listener
from r2med.server.refusals import HTTPError

_LIVE = b'<script defer src="assets/live.js"></script>\n</head>'
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Browsers must not cache files, because the board may be made again."""


def create_preview_app(preview: LiveBoard) -> FastAPI:
    """Return the application that serves the files of a board, and the version that its pages check."""
    app = guarded_app("r2med board")

    @app.api_route("/", methods=["GET", "HEAD"])
    @app.api_route("/index.html", methods=["GET", "HEAD"])
    def page() -> Response:
        text = (preview.folder / "index.html").read_bytes()
        return Response(text.replace(b"</head>", _LIVE), media_type="text/html", headers=_HEADERS)

    @app.api_route("/version.js", methods=["GET", "HEAD"])
    def version() -> Response:
        script = f'pages.version("{preview.version}");\n'
        return Response(script, media_type="text/javascript", headers=_HEADERS)

    @app.api_route("/{path:path}", methods=["GET", "HEAD"])
    def file(path: str) -> Response:
        return FileResponse(_inside(preview.folder, path), headers=_HEADERS)

    return app


def _inside(folder: Path, path: str) -> Path:
    """Return a file of the board. Raises HTTPError for other files. The folder may also contain notes or records."""
    try:
        file = (folder / path).resolve()
        if FILE_NAMES.fullmatch(path) and file.is_relative_to(folder.resolve()) and file.is_file():
            return file
    except (OSError, ValueError):  # the path is too long or has a null character
        pass
    raise HTTPError(404, "there is no such page")


def serve_preview(preview: LiveBoard, listener: Listener, server: GuardedServer) -> None:
    """Serve a board and update it until Ctrl-C."""
    stopped = threading.Event()
    follower = threading.Thread(target=preview.follow, args=(stopped,), daemon=True)
    follower.start()
    try:
        server.serve_at(listener)
    finally:
        stopped.set()
        follower.join()
