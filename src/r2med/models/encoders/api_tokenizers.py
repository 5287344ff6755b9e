"""Count and cut texts with the tokenizer of an embedding API. It is loaded only when a text may be over the limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from r2med.foundation.core.errors import UserError


@dataclass(frozen=True)
class Tokenizer:
    """An API's way of counting tokens."""

    count: Callable[[str], int]
    head: Callable[[str, int], str]
    """(text, tokens) -> the beginning of the text with about this number of tokens."""


class TokenLimiter:
    """Cuts texts at a token limit.

    Until the tokenizer is needed, texts are measured by their bytes, because these tokenizers never make more tokens
    than bytes. Their vocabularies are downloads, so short texts do not load one. Batches and budgets then use the
    number of bytes as the upper bound.
    """

    def __init__(self, load: Callable[[], Tokenizer] | None, overhead: int = 0) -> None:
        """Set the function that loads the tokenizer. Without one, no text is cut.

        `overhead` is the number of tokens that the API may add to a text.
        """
        self._load = load
        self._overhead = overhead
        self._tokenizer: Tokenizer | None = None

    def bound(self, text: str) -> int:
        """Return the maximum number of tokens of a text."""
        count = self._tokenizer.count(text) if self._tokenizer else len(text.encode())
        return count + self._overhead

    def cut(self, text: str, limit: int) -> str:
        """Return the text, or the longest beginning of it that is within the limit."""
        if self._load is None or len(text.encode()) + self._overhead <= limit:
            return text
        if self._tokenizer is None:
            self._tokenizer = self._load()
        if self._tokenizer.count(text) <= limit:
            return text
        keep = limit
        # A beginning may have more tokens than it had inside the whole text, because the cut changes which tokens
        # merge.
        while keep > 0 and self._tokenizer.count(short := self._tokenizer.head(text, keep)) > limit:
            keep -= 1
        return short if keep > 0 else ""


def load_tiktoken(name: str, model: str) -> Tokenizer:
    """Return a tokenizer of OpenAI. Raises UserError if it cannot be downloaded."""
    import tiktoken

    try:
        encoding: Any = tiktoken.get_encoding(name)
    # The download may raise anything: errors of the connection, the proxy, the checksum or the disk.
    except Exception as error:
        raise UserError(
            f"a text may exceed the limit of {model}, and its tokenizer ({name}) cannot be loaded "
            f"({type(error).__name__}); on a machine with network access, run TIKTOKEN_CACHE_DIR=DIR python -c "
            f"'import tiktoken; tiktoken.get_encoding(\"{name}\")', then set TIKTOKEN_CACHE_DIR to that folder here"
        ) from None

    def ids(text: str) -> list[int]:
        # Text in a document that looks like a special token is plain text.
        return encoding.encode(text, disallowed_special=())  # type: ignore[no-any-return]

    def head(text: str, tokens: int) -> str:
        whole: bytes = encoding.decode_bytes(ids(text)[:tokens])
        return whole.decode("utf-8", errors="ignore")  # A character that was cut in the middle is left out.

    return Tokenizer(lambda text: len(ids(text)), head)


def load_hub(name: str, model: str) -> Tokenizer:
    """Return the tokenizer of a repository, from the hub or its cache. Raises UserError if it has none."""
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_pretrained(name)
    except Exception as error:  # The hub's client may raise anything.
        raise UserError(
            f"a text may exceed the limit of {model}, and its tokenizer ({name} on the hub) "
            f"cannot be loaded ({type(error).__name__}); on a machine with network access, run HF_HOME=DIR hf download "
            f"{name}, then set HF_HOME to that folder here"
        ) from None
    tokenizer.no_truncation()  # Its file contains its own limit, so that no text would ever exceed ours.

    def head(text: str, tokens: int) -> str:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets[:tokens]
        return text[: max((end for _, end in offsets), default=0)]

    return Tokenizer(lambda text: len(tokenizer.encode(text)), head)


TOKENIZERS: Mapping[str, Callable[[str, str], Tokenizer]] = {"tiktoken": load_tiktoken, "hub": load_hub}
"""Kind of tokenizer in the card of an API -> the function that loads it by its name, for a model."""


def load_tokenizer(tokenizer: str, model: str) -> Tokenizer:
    """Return the tokenizer of KIND:NAME for a model. Raises UserError if it cannot be loaded."""
    kind, _, name = tokenizer.partition(":")
    return TOKENIZERS[kind](name, model)
