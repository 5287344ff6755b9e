"""The command run --plan needs no key and no network, and says what is missing."""

import pytest

from support.facts import some_states
from support.fork_server import Command


@pytest.mark.parametrize(
    ("system", "flags", "missing"),
    [
        ("hyde(gpt4) → bm25", ["--offline"], ["offline", "gpt4"]),
        ("bm25 → groupwise(o3-mini)@5", ["--offline"], ["offline", "o3-mini"]),
        ("openai", ["--offline"], ["offline", "openai"]),
        ("openai", [], ["OPENAI_API_KEY", "not set", "export"]),
    ],
)
def test_a_plan_is_made_without_a_key_and_offline_and_says_what_is_missing(
    r2med: Command, system: str, flags: list[str], missing: list[str]
) -> None:
    shown = r2med("run", system, "--data", "demo/Biology", "--plan", *flags, OPENAI_API_KEY="")
    assert (shown.returncode, shown.stderr) == (0, "")
    some_states(shown.stdout.splitlines(), "MISSING", *missing)
    if flags:
        some_states(r2med("run", system, "--data", "demo/Biology", *flags).messages, *missing)


def test_a_plan_names_no_key_of_a_server_of_the_users_own(r2med: Command) -> None:
    variables = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    shown = r2med("run", "hyde(gpt4) → bm25", "--data", "demo/Biology", "--plan", **variables)
    assert shown.returncode == 0 and "gpt4" in shown.stdout and "not set" not in shown.stdout
