"""What is kept on this machine, and if it is sound."""

from __future__ import annotations

from r2med.foundation.engine.reporting import Reporter, announcing
from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Note, Table, table_page
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import holdings, verify_store
from r2med.foundation.store.manifest import MANIFEST
from r2med.foundation.text.plurals import counted, shown_bytes
from r2med.models.llm.journal import answers_by_model
from r2med.public.listing import Listing, listed_lines


def cache_contents(store: Store) -> Listing:
    """Return the kept artefacts by kind, dataset and model, and the answers of each LLM."""
    held, answers = holdings(store), {model: len(keys) for model, keys in answers_by_model(store).items()}
    rows: list[list[Value]] = [[h.kind, h.dataset, h.model, len(h.paths), shown_bytes(h.size)] for h in held]
    rows += [["answers", "", model, count, ""] for model, count in answers.items()]
    numbers = (Column("number", "integer"), Column("size", "number"))
    columns = (Column("kind"), Column("dataset"), Column("model"), *numbers)
    total = Note(f"{shown_bytes(sum(h.size for h in held))} in {store.root}", whole=True)
    kept = [{"kind": h.kind, "dataset": h.dataset, "model": h.model, "bytes": h.size} for h in held]
    page = table_page("Kept on this machine", Table(columns, rows), notes=[total])
    return Listing(page, {"folder": str(store.root), "kept": kept, "answers": answers})


def verified_cache(store: Store, repair: bool) -> Listing:
    """Read every file of the store byte by byte, and return damaged ones. `repair` removes them."""
    total = sum(1 for pattern in (f"*/*/{MANIFEST}", "**/*.sqlite") for _ in store.root.glob(pattern))
    announcing(1)(f"checking {store.root}")
    reporter = Reporter("artefacts", total)
    sound = size = 0
    damaged = []
    for verified in verify_store(store, mend=repair):
        reporter.advance(1)
        size += verified.size
        if verified.fault:
            damaged.append(verified)
        else:
            sound += 1
    lines = [f"damaged: {each.path}: {each.fault} ({_remedy(each.kind, repair)})" for each in damaged]
    fine = counted(sound, "artefact is sound", "artefacts are sound")
    lines.append(f"{store.root}: {fine}, {len(damaged):,} damaged; {shown_bytes(size)}")
    found = [{"path": str(each.path), "fault": each.fault} for each in damaged]
    value = {"folder": str(store.root), "sound": sound, "damaged": found, "bytes": size}
    return listed_lines("Check of what is kept", lines, value)


def _remedy(kind: str, repair: bool) -> str:
    """Return what happens to a damaged artefact or to a damaged table of rows."""
    if kind == "rows":
        return "sound rows are kept, the others are made again when they are next needed"
    if repair:
        return "it was removed, and is made again when it is next needed"
    return "r2med cache verify --repair removes it, and it is made again when it is next needed"
