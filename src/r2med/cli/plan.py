"""`--dry-run`: what a run would ask of LLMs, about what it would cost, and three prompts in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2med.store import Store
    from r2med.system import System

SHOWN = 3


def show_plan(systems: list[System], datasets: list[str], store: Store) -> None:
    """Print calls, tokens and cost of each expansion, and the first prompts; nothing is asked."""
    from r2med.cli import printable
    from r2med.data import load
    from r2med.expand.generate import Generated
    from r2med.models.chat.model import JournaledChat
    from r2med.models.chat.price import estimate

    expanders = {s.expander.name: s.expander for s in systems if isinstance(s.expander, Generated)}
    if not expanders:
        print("no LLM would be asked")
        return
    prompts: list[str] = []
    for name, expander in expanders.items():
        requests = [r for word in datasets for r in expander.prepare(load(word, store), store).requests]
        llm = expander.llm
        missing = llm.unanswered(requests) if isinstance(llm, JournaledChat) else requests
        about = estimate(missing, expander.card)
        times = expander.settings.rounds + 1
        rounds = f"; about {times} times that with its rounds of refinement" if times > 1 else ""
        print(f"{name}: {about.calls:,} calls, {len(requests) - len(missing):,} answered already")
        print(f"  {about.prompt_tokens:,} prompt tokens and about {about.completion_tokens:,} completion tokens")
        print(f"  about ${about.cost_usd:.2f}, at most ${about.cost_at_most_usd:.2f}{rounds}")
        prompts += ["\n".join(f"[{m.role}]\n{m.content}" for m in request.messages) for request in requests[:SHOWN]]
    for number, text in enumerate(prompts[:SHOWN], 1):
        print(f"\n--- prompt {number} ---")
        print("\n".join(map(printable, text.split("\n"))))
