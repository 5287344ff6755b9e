"""The command for a missing extra follows from how r2med was installed, and names no package without an address."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med.foundation.core import installation
from r2med.foundation.core.installation import install_extra

ADDRESS = "https://git.invalid/team/r2med"
COMMIT = "3b47a34c9d1e5f60718293a4b5c6d7e8f9001122"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Stand in for an installed package: its code is in site-packages, and its metadata are what the test writes."""
    files = {"METADATA": f"Name: r2med\nProject-URL: Repository, {ADDRESS}\n\nProject-URL: Repository, no\n"}
    monkeypatch.setattr(installation, "__file__", str(tmp_path / "site-packages/r2med/foundation/core/installation.py"))
    monkeypatch.setattr(installation, "_metadata", lambda name: files.get(name, ""))
    return files


def test_code_of_a_clone_is_installed_from_that_clone() -> None:
    clone = Path(installation.__file__).parents[4]
    assert install_extra("dense") == f"pip install -e '{clone}[dense]'"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///home/me/r2%20med", "dir_info": {}}, "'/home/me/r2 med[hub]'"),
        ({"url": "file:///home/me/r2med", "dir_info": {"editable": True}}, "-e '/home/me/r2med[hub]'"),
        ({"url": "file:///dist/r2med-1.0.0-py3-none-any.whl", "archive_info": {}},
         "'/dist/r2med-1.0.0-py3-none-any.whl[hub]'"),
        ({"url": f"{ADDRESS}/r2med-1.0.0.tar.gz", "archive_info": {"hashes": {"sha256": "ab12"}}},
         f"'r2med[hub] @ {ADDRESS}/r2med-1.0.0.tar.gz#sha256=ab12'"),
        ({"url": ADDRESS, "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": COMMIT}},
         f"'r2med[hub] @ git+{ADDRESS}@{COMMIT}'"),
        ({}, f"'r2med[hub] @ git+{ADDRESS}@v{{version}}'"),
    ],
)  # fmt: skip
def test_the_command_installs_from_where_r2med_came_from(
    installed: dict[str, str], origin: dict[str, object], command: str
) -> None:
    from r2med import __version__

    installed["direct_url.json"] = json.dumps(origin)
    assert install_extra("hub") == f"pip install {command.replace('{version}', __version__)}"


def test_without_a_published_address_the_command_is_that_of_a_clone(installed: dict[str, str]) -> None:
    installed["METADATA"] = "Project-URL: Repository, https://REPLACE-WITH-THE-ADDRESS-OF-THIS-REPOSITORY\n\n"
    assert install_extra("hub") == "pip install -e '.[hub]' in a clone of r2med"


def test_what_uv_installed_uv_extends(installed: dict[str, str]) -> None:
    installed["INSTALLER"] = "uv\n"
    assert install_extra("hub").startswith("uv pip install 'r2med[hub] @ git+")
