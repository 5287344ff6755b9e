"""Names of the rubrics by which people review texts of a build or of a table. Commands name them without a rubric."""

PASSAGE = "passage"
"""The kind of candidates. A review that names no kind is about a candidate."""
PAGE = "page"
"""The kind of translated pages. The other kinds are about texts of questions."""
KINDS = (PASSAGE, "question", "answer", "reasoning", "translation", PAGE)
"""All kinds, in the order of commands and tables."""
