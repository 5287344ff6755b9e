"""The command doctor never shows a key."""

from __future__ import annotations

import json

import pytest

from support.fork_server import Command
from support.keys import KEY


@pytest.mark.usefixtures("marked_keys")
def test_keys_are_present_but_never_shown(r2med: Command) -> None:
    shown = r2med("doctor", OPENAI_API_KEY=KEY)
    assert shown.returncode == 0
    assert "key OPENAI_API_KEY" in shown.stdout
    assert KEY not in shown.stdout + shown.stderr
    printed = r2med("doctor", "--format", "json", OPENAI_API_KEY=KEY).stdout
    assert json.loads(printed)["keys"]["OPENAI_API_KEY"] is True
    assert KEY not in printed
