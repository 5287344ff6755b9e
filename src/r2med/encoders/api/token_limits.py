"""Counting and cutting texts as a provider does; its tokenizer is loaded only when a text may be over the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from r2med.errors import MissingExtraError, UserError


class Tokenizer(Protocol):
    """A provider's way of counting."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""

    def head(self, text: str, tokens: int) -> str:
        """Return about the first `tokens` tokens of a text as text."""


class TokenLimiter:
    """Cuts texts at a limit: by the tokenizer once one was needed, before that by their bytes.

    The tokenizers here make no more tokens than a text has bytes, and their vocabularies are downloads. So short
    texts are never worth loading one: they pass, and their bytes are the bound that batches and budgets go by.
    """

    def __init__(self, load: Callable[[], Tokenizer], overhead: int = 0) -> None:
        """Take what loads the tokenizer; `overhead` are tokens that the provider may add to a text."""
        self._load = load
        self._overhead = overhead
        self._tokenizer: Tokenizer | None = None

    def bound(self, text: str) -> int:
        """Return how many tokens a text has at most."""
        count = self._tokenizer.count(text) if self._tokenizer else len(text.encode())
        return count + self._overhead

    def cut(self, text: str, limit: int) -> str:
        """Return the text, or as much of its beginning as is within the limit."""
        if len(text.encode()) + self._overhead <= limit:
            return text
        if self._tokenizer is None:
            self._tokenizer = self._load()
        if self._tokenizer.count(text) <= limit:
            return text
        keep = limit
        # A beginning may have more tokens than it had as part of the whole: the cut changes what merges.
        while keep > 0 and self._tokenizer.count(short := self._tokenizer.head(text, keep)) > limit:
            keep -= 1
        return short if keep > 0 else ""


def load_tiktoken(model: str) -> Tokenizer:
    """Return the tokenizer of OpenAI's embedding models. Raises UserError if it cannot be downloaded."""
    try:
        import tiktoken
    except ImportError:
        raise MissingExtraError(f"cutting texts for {model}", "api") from None
    try:
        return _TikToken(tiktoken.get_encoding("cl100k_base"))
    except Exception as error:  # whatever its download raises: connection, proxy, checksum, disk
        raise UserError(
            f"a text may be over {model}'s limit, and the tokenizer that would tell (cl100k_base) cannot be loaded "
            f"({type(error).__name__}): where there is a network, run TIKTOKEN_CACHE_DIR=DIR python -c "
            "'import tiktoken; tiktoken.get_encoding(\"cl100k_base\")', then set TIKTOKEN_CACHE_DIR to that folder here"
        ) from None


def load_voyage(model: str) -> Tokenizer:
    """Return the tokenizer of one of Voyage's models, from the hub or its cache. Raises UserError if it has none."""
    try:
        import tokenizers
    except ImportError:
        raise MissingExtraError(f"cutting texts for {model}", "api") from None
    try:
        tokenizer = tokenizers.Tokenizer.from_pretrained(f"voyageai/{model}")
    except Exception as error:  # whatever the hub's client raises
        raise UserError(
            f"a text may be over {model}'s limit, and the tokenizer that would tell (voyageai/{model} on the hub) "
            f"cannot be loaded ({type(error).__name__}): where there is a network, run HF_HOME=DIR hf download "
            f"voyageai/{model}, then set HF_HOME to that folder here"
        ) from None
    tokenizer.no_truncation()  # its file has a limit of its own, by which nothing would ever be over another
    return _HubTokenizer(tokenizer)


class _TikToken:
    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def count(self, text: str) -> int:
        return len(self._encode(text))

    def head(self, text: str, tokens: int) -> str:
        whole: bytes = self._encoding.decode_bytes(self._encode(text)[:tokens])
        return whole.decode("utf-8", errors="ignore")  # a character that the cut went through is left out

    def _encode(self, text: str) -> list[int]:
        # What looks like a special token in a document is text.
        return self._encoding.encode(text, disallowed_special=())  # type: ignore[no-any-return]


class _HubTokenizer:
    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text))

    def head(self, text: str, tokens: int) -> str:
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets[:tokens]
        return text[: max((end for _, end in offsets), default=0)]
