"""Chinese words, as the segmenter jieba finds them. Chinese is written without blanks between words."""

from __future__ import annotations

import re

from r2med.foundation.core.errors import MissingExtraError

_PARTS = re.compile("[\u4e00-\u9fd5]+|.", re.DOTALL)
"""What is searched for words. All other signs are words of one sign in jieba; its port in Rust would join them."""


def chinese_words(run: str) -> list[str]:
    """Return the words of a run of Chinese characters, in order: jieba's precise mode, which covers every character."""
    try:
        import rjieba
    except ImportError:
        raise MissingExtraError("the analysis of Chinese text (language=zh)", "languages") from None
    return [str(word) for part in _PARTS.findall(run) for word in (rjieba.cut(part) if len(part) > 1 else part)]
