"""Limits are positive numbers, from Python or from a TOML file; the docs list all of them."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from r2med.foundation.core.errors import UserError
from r2med.server.limits import Limits, read_limits

DOCS = Path(__file__).parents[2] / "docs/serve-others.md"


@pytest.mark.parametrize("limit", ["topk", "seconds", "connections"])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Limits(**{limit: 0})


def test_a_file_sets_some_limits_and_leaves_the_others(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text("topk = 50\ngrace = 0\n")
    assert read_limits(file) == Limits(topk=50, grace=0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("connections = 0", "limits.toml: connections: it must be greater than or equal to 1"),
        ("topk = 'many'", "limits.toml: topk: it must be a whole number, not 'many'"),
        ("max_topk = 5", "limits.toml: max_topk: there is no such field .did you mean topk"),
        ("topk = ", "limits.toml: not a TOML file of limits"),
        (None, "limits.toml: No such file"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, text, says):
    if text is not None:
        (tmp_path / "limits.toml").write_text(text)
    with pytest.raises(UserError, match=says):
        read_limits(tmp_path / "limits.toml")


def test_the_docs_list_every_limit_with_its_default():
    rows = [line.split("|")[1:3] for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    listed = {name.strip(" `"): default.strip() for name, default in rows}
    wanted = {name: f"{field.default:,}" for name, field in Limits.model_fields.items()}
    assert {name: listed.get(name) for name in wanted} == wanted
