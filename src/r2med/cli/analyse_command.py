"""What `r2med analyse` shows: the findings of each analysis, and the files with all tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from r2med.cli.generated import Shown
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.analysis.analysis import Analysis


def show_analysis(done: Analysis, form: str) -> Shown:
    """Show the findings in a terminal, whose tables are on the page that was written, or the whole page."""
    from r2med.foundation.pages.page import Paragraph, Section

    page = done.page
    if form == "text":
        leads = [Section(each.title, (), each.lead, each.notes) for each in page.sections]
        files = Paragraph(f"{done.files[0]}, with {counted(len(done.files) - 1, 'CSV file')} beside it", no_wrap=True)
        page = replace(page, sections=[*leads, Section("", [files])])
    return Shown(replace(page, has_files=False))
