"""Build the site of the docs into build/docs, with live pages for the gallery: python docs/make_site.py.

The commands of docs/gallery.md run in a temporary folder, offline. What they write is copied to build/docs/live/.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build/docs"
LIVE = ("board", "exam-built/exam-example", "audit.html")
"""Files and folders that the commands of the gallery write and that the gallery links to."""


def main() -> None:
    """Build the pages, run the commands of the gallery, and put what they wrote beside the pages."""
    # --clean, because Zensical does not repeat the warnings of a page that it has in its cache.
    subprocess.run([_beside_python("zensical"), "build", "--strict", "--clean"], cwd=ROOT, check=True)
    shutil.rmtree(SITE / "live", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for command in commands("gallery.md"):
            _run(command, Path(folder))
        for name in LIVE:
            _copy(Path(folder) / name, SITE / "live" / name)
    print(f"The site: {SITE.relative_to(ROOT)}/index.html. Its search needs a server: zensical serve, or any other.")


def commands(page: str) -> list[str]:
    """Return the commands of a page, in its order. Those in blocks of another kind need more than the demo."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for kind, body in blocks if not kind for line in body.splitlines()]
    return [line for line in lines if line.startswith("r2med ")]


def _run(command: str, folder: Path) -> None:
    words = shlex.split(command, comments=True)[1:]
    settings = {**os.environ, "R2MED_HOME": str(folder / "cache"), "COLUMNS": "120"}
    done = subprocess.run(
        [_beside_python("r2med"), *words], cwd=folder, env=settings, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"a page of the docs says {command!r}, and it failed:\n{done.stderr}")


def _beside_python(name: str) -> str:
    """Return the path of a command of this environment, which need not be active."""
    return str(Path(sys.executable).with_name(name))


def _copy(made: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if made.is_dir():
        shutil.copytree(made, target)
    else:
        shutil.copyfile(made, target)


if __name__ == "__main__":
    main()
