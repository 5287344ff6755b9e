"""Layouts of datasets on disk: one module per layout turns files into rows, and `detect` finds the layout."""

from r2med.data.layouts.detect import Layout, detect, is_dataset

__all__ = ["Layout", "detect", "is_dataset"]
