"""What `r2med generate` shows: the file of each dataset, or why it was not written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from r2med.cli.generated import INCOMPLETE
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.evaluation.running.text_generation import GeneratedTexts


def show_texts(made: Sequence[GeneratedTexts]) -> int:
    """Print a line for each dataset."""

    for texts in made:
        if texts.file is None:
            print(f"r2med: {printable(texts.problem)}", file=sys.stderr, flush=True)
        else:
            of_all = f"{texts.answered:,} of {counted(texts.queries, 'query', 'queries')}"
            print(f"{printable(str(texts.file))}: {of_all}", flush=True)
    return INCOMPLETE if any(texts.problem for texts in made) else 0
