"""Chinese words, as the segmenter jieba finds them. Chinese is written without blanks between words."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from r2med.foundation.core.errors import MissingExtraError


def chinese_words(run: str) -> list[str]:
    """Return the words of a run of Chinese characters, in order: jieba's precise mode, which covers every character."""
    return [str(word) for word in _segmenter().cut(run)]


@cache
def _segmenter() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its patterns have escapes that newer versions of Python warn of
            import jieba
    except ImportError:
        raise MissingExtraError("the analysis of Chinese text (language=zh)", "languages") from None
    segmenter = jieba.Tokenizer()
    # Not `initialize()`: it reads and writes a file in the shared folder for temporary files, which anyone could place.
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True
    return segmenter
