"""How datasets lie on disk: one module per layout, each turning files into rows; `detect` tells which it is."""

from r2med.data.layouts.detect import Layout, detect, is_dataset

__all__ = ["Layout", "detect", "is_dataset"]
