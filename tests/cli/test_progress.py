"""How progress is told."""

import pytest

from r2med.cli.progress import words
from r2med.engine.progress import Progress


@pytest.mark.parametrize(
    ("seconds", "pace"), [(0.005, "1,200/s"), (0.8, "8/s"), (6.0, "1/s"), (12.0, "30/min"), (180.0, "2/min")]
)
def test_slow_work_is_told_by_the_minute(seconds, pace):
    assert pace in words(Progress("answers", done=8, total=20, before=2, seconds=seconds))
