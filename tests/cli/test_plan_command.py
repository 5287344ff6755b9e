"""The command run --plan needs no key and no network, and says what is missing."""

import pytest

from support.fork_server import Command


@pytest.mark.parametrize(
    ("system", "flags", "missing"),
    [
        ("hyde(gpt4) → bm25", ["--offline"], "MISSING: offline, and gpt4 is not on this machine"),
        ("bm25 → groupwise(o3-mini)@5", ["--offline"], "MISSING: offline, and o3-mini is not on this machine"),
        ("openai", ["--offline"], "MISSING: offline, and openai is not this machine"),
        ("openai", [], "MISSING: OPENAI_API_KEY is not set; export it before the run"),
    ],
)
def test_a_plan_is_made_without_a_key_and_offline_and_says_what_is_missing(
    r2med: Command, system: str, flags: list[str], missing: str
) -> None:
    shown = r2med("run", system, "--data", "demo/Biology", "--plan", *flags, OPENAI_API_KEY="")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert missing in shown.stdout
    if flags:
        assert "is not this machine" in r2med("run", system, "--data", "demo/Biology", *flags).stderr
