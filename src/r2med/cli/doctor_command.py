"""`r2med doctor`: check this machine for r2med."""

from __future__ import annotations

from typing import Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.installation import install_extra


def doctor(
    base_url: Annotated[
        list[str] | None, typer.Option(help="An endpoint to test. May be repeated.", show_default=False)
    ] = None,
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Show versions, devices, extras, the cache, which keys are set (never their values), and endpoints that answer."""
    from r2med.evaluation.running.doctor import doctor as examine
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Note, Table, table_page

    diagnosis = examine(base_url or [])
    missing = {name: ", ".join(packages) for name, packages in diagnosis.extras.items()}
    free = f"{diagnosis.cache_free / 1e9:.1f} GB free" if diagnosis.cache_free else "cannot be written to"
    rows = [
        *((name, version) for name, version in diagnosis.versions.items()),
        ("devices", ", ".join(diagnosis.devices) or f"none for models: {install_extra('dense')}"),
        ("CPU cores", str(diagnosis.cores)),
        ("cache", f"{diagnosis.cache} ({free})"),
        *((f"extra {name}", f"lacks {lacks}" if lacks else "installed") for name, lacks in missing.items()),
        *((f"key {name}", "set" if is_set else "not set") for name, is_set in diagnosis.keys.items()),
        *((server, fault or "answers") for server, fault in diagnosis.endpoints.items()),
    ]
    note = Note("Keys are never shown; endpoints are asked without one.", "quiet")
    page = table_page("This machine", Table((Column("what", whole=True), Column("here")), rows), notes=[note])
    show_page(page, form, as_json, {**vars(diagnosis), "cache": str(diagnosis.cache)})
    if not diagnosis.cache_free or any(diagnosis.endpoints.values()):
        raise typer.Exit(1)
