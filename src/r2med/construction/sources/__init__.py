"""Readers of raw sources: exams, forums, case reports, pages, tables."""
