"""What is kept on this machine."""

from __future__ import annotations

from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Paragraph, Table, table_page
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import holdings
from r2med.foundation.text.plurals import shown_bytes
from r2med.models.llm.journal import answers_by_model
from r2med.public.listing import Listing


def cache_contents(store: Store) -> Listing:
    """Return the kept artefacts by kind, dataset and model, and the answers of each LLM."""
    held, answers = holdings(store), {model: len(keys) for model, keys in answers_by_model(store).items()}
    rows: list[list[Value]] = [[h.kind, h.dataset, h.model, len(h.paths), shown_bytes(h.size)] for h in held]
    rows += [["answers", "", model, count, ""] for model, count in answers.items()]
    numbers = (Column("number", "integer"), Column("size", "number"))
    columns = (Column("kind"), Column("dataset"), Column("model"), *numbers)
    total = Paragraph(f"{shown_bytes(sum(h.size for h in held))} in {store.root}", no_wrap=True)
    kept = [{"kind": h.kind, "dataset": h.dataset, "model": h.model, "bytes": h.size} for h in held]
    page = table_page("Kept on this machine", Table(columns, rows), notes=[total])
    return Listing(page, {"folder": str(store.root), "kept": kept, "answers": answers})
