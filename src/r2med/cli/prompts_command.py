"""What `r2med prompts new` and `prompts fetch` show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.foundation.core.spec import encoded
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.systems.rerank.authors_prompts import FoundPrompt


def show_new_prompts(written: Sequence[Path], method: str, out: str | Path) -> None:
    """Show the files, and how they are used."""
    from r2med.public.prompt_users import used_by

    for path in written:
        print(printable(str(path)))
    _, user, needs_llm = used_by(method)
    inside = f"{'LLM, ' if needs_llm else ''}prompts={encoded(str(out))}"
    print(printable(f"Change what you like, delete the rest; then: {user}({inside})"))


def show_fetched_prompt(found: FoundPrompt, reranker: str) -> None:
    """Show where a prompt is from, what of it is not converted, and how to compare it with ours."""
    print(printable(found.statement))
    for remark in found.authors.unconverted:
        print(printable(f"Not converted: {remark}"))
    print(printable(f"Used by prompts=authors. Beside ours: r2med show --kind prompts {reranker}"))
