"""What `r2med doctor` shows: this machine, and a model on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.cli.generated import Shown
from r2med.foundation.core.installation import install_extra

if TYPE_CHECKING:
    from r2med.evaluation.running.doctor import Diagnosis


def show_diagnosis(diagnosis: Diagnosis) -> Shown:
    """Show the machine. The command ends with 1 if the cache cannot be written, or if an endpoint does not answer."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Paragraph, Table, table_page

    missing = {name: ", ".join(packages) for name, packages in diagnosis.extras.items()}
    free = f"{diagnosis.cache_free / 1e9:.1f} GB free" if diagnosis.cache_free else "cannot be written to"
    rows = [
        *((name, version) for name, version in diagnosis.versions.items()),
        ("devices", ", ".join(diagnosis.devices) or f"none for models: {install_extra('models')}"),
        ("CPU cores", str(diagnosis.cores)),
        ("cache", f"{diagnosis.cache} ({free})"),
        *((f"extra {name}", f"lacks {lacks}" if lacks else "installed") for name, lacks in missing.items()),
        *((f"key {name}", "set" if is_set else "not set") for name, is_set in diagnosis.keys.items()),
        *((server, fault or "answers") for server, fault in diagnosis.endpoints.items()),
    ]
    notes = [Paragraph("Keys are never shown; endpoints are asked without one.", "quiet")]
    notes += [Paragraph(line, no_wrap=True) for line in diagnosis.model]
    page = table_page("This machine", Table((Column("what", no_wrap=True), Column("here")), rows), notes=notes)
    failed = not diagnosis.cache_free or any(diagnosis.endpoints.values())
    return Shown(page, {**vars(diagnosis), "cache": str(diagnosis.cache)}, code=1 if failed else 0)
