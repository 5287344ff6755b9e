"""Notices are texts in Python, and their settings and commands stay values."""

import copy
import json
import logging
import pickle

import pytest

from r2med.foundation.core.errors import MissingExtraError, UserError
from r2med.foundation.core.notices import Command, Notice, Setting, joined
from r2med.foundation.runtime.setup import SettingError

CPU = Setting("Setup", device="cpu")


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (Setting("Setup", device="cpu", dtype=...), "Setup(device='cpu', dtype=...)"),
        (Setting("Setup", model_paths={"minilm": "DIR"}), "Setup(model_paths={'minilm': 'DIR'})"),
        (Setting("run", expand=["hyde", "rm3"], k=2), "run(expand=['hyde', 'rm3'], k=2)"),
        (Command("run", "rm3 → bm25", data="demo"), "r2med.run('rm3 → bm25', data='demo')"),
        (Command("run", ["bm25", "rm3"], fresh=True), "r2med.run(['bm25', 'rm3'], fresh=True)"),
    ],
)
def test_a_setting_reads_as_python(setting, text):
    assert Notice(setting) == str(setting) == text


def test_a_notice_is_a_text_that_keeps_its_settings_as_values():
    notice = Notice("use ", CPU, " or ", "less memory")
    assert notice == "use Setup(device='cpu') or less memory" and isinstance(notice, str)
    assert notice.parts == ("use ", CPU, " or less memory")
    assert json.dumps([notice]) == json.dumps([str.__str__(notice)])


def test_settings_stay_values_within_other_notices_and_errors():
    error = UserError("no GPU: use ", CPU)
    assert error.message.parts == ("no GPU: use ", CPU) and str(error) == "no GPU: use Setup(device='cpu')"
    again = UserError(error, "; or give ", Setting("Setup", memory=...))
    assert again.message.parts == ("no GPU: use ", CPU, "; or give ", Setting("Setup", memory=...))
    assert joined(", ", [Notice(CPU), "more", error]).parts == (CPU, ", more, no GPU: use ", CPU)


def test_a_notice_is_one_line_and_values_stay_exact():
    column = Setting("import_data", text="two  spaces")
    error = UserError("  first\n second: ", column, "\n")
    assert str(error) == "first second: import_data(text='two  spaces')"


def test_a_logged_notice_arrives_with_its_settings(caplog):
    logging.getLogger("r2med.test").warning(Notice("100 % on ", CPU))
    assert caplog.records[0].getMessage().parts == ("100 % on ", CPU)


@pytest.mark.parametrize("copied", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy])  # noqa: S301
@pytest.mark.parametrize(
    "error",
    [UserError("use ", CPU), SettingError("depth", 0, "it must be 1 or more"), MissingExtraError("a chart", "plots")],
    ids=lambda error: type(error).__name__,
)
def test_errors_arrive_in_another_process_as_they_were(copied, error):
    arrived = copied(error)
    assert type(arrived) is type(error) and arrived.message == error.message
    assert arrived.message.parts == error.message.parts
