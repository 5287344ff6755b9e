"""Convert texts to token ids, with the prefix, limit, pairs and end-of-sequence token of a model's card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.errors import UserError
from r2med.models.encoders.model_cards import Side

Ids = npt.NDArray[np.int32]

TEXTS_AT_ONCE = 1024
"""Number of texts given to the tokenizer's threads in one call. Its own data of a text is far larger than the ids."""


@dataclass
class Tokens:
    """The ids of some texts or pairs, and which of them were cut."""

    ids: list[Ids] = field(default_factory=list)
    types: list[Ids] = field(default_factory=list)
    """Part of a pair that each token belongs to. Empty if texts are not pairs or if the model does not use it."""
    cut: list[bool] = field(default_factory=list)
    """True for each text that was cut at the limit."""

    def lengths(self) -> list[int]:
        """Return the number of tokens of each text."""
        return [len(ids) for ids in self.ids]


class TextTokenizer:
    """A model's tokenizer, used without its padding."""

    def __init__(self, tokenizer: Any, append_eos: bool = False) -> None:
        self._tokenizer = tokenizer
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        self.pad = pad_token(tokenizer)
        self._eos: int | None = None
        # Some tokenizers of last-token models add the end of sequence themselves. A test is safer than their flags.
        if append_eos and self._single("a")[-1:] != [tokenizer.eos_token_id]:
            if tokenizer.eos_token_id is None:
                raise UserError("the card says append_eos, but the tokenizer has no end-of-sequence token")
            self._eos = int(tokenizer.eos_token_id)

    def __call__(self, texts: Sequence[str], side: Side, prefix: str, limit: int = 0) -> Tokens:
        """Return the ids of prefix + text within a limit, including special tokens. 0: the limit of the side."""
        room = (limit or side.max_tokens) - (self._eos is not None)
        tokens = Tokens()
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            chunk = [prefix + text for text in texts[start : start + TEXTS_AT_ONCE]]
            inputs: list[Any] = [("", text) for text in chunk] if side.pair_with_empty else list(chunk)
            for ids, types, cut in self._encode(inputs, room):
                if self._eos is not None and ids[-1:] != [self._eos]:
                    ids = [*ids, self._eos]
                # Without special tokens, a decoder gives no ids for "", which no model can read.
                tokens.ids.append(np.asarray(ids or [self.pad], dtype=np.int32))
                if side.pair_with_empty:
                    tokens.types.append(np.asarray(types, dtype=np.int32))
                tokens.cut.append(cut)
        return tokens

    def prefix_length(self, prefix: str) -> int:
        """Return the number of tokens of a prefix, including the beginning of sequence but not the end of a text.

        The prefix is tokenized alone, as in GritLM and Instructor. A space at its end is not counted. These tokenizers
        join it to the first word of the text, and that word would otherwise be left out with the prefix.
        """
        if not prefix:
            return 0
        ids = self._single(prefix.rstrip(" "))
        special = set(self._tokenizer.all_special_ids)
        while ids and ids[-1] in special:
            ids = ids[:-1]
        return len(ids)

    @property
    def can_cut(self) -> bool:
        """True if it knows which characters a token is made of."""
        return self._backend is not None

    def passages(self, texts: Sequence[str], side: Side, prefix: str, tokens: int) -> list[list[str]]:
        """Return the passages of each text, without overlap and cut between words where possible.

        Each has at most this many tokens, including the prefix and special tokens. Raises UserError if these leave no
        room for a text.
        """

        def count(text: str) -> int:
            return self([text], side, prefix, limit=1 << 30).lengths()[0]

        if (room := tokens - count("")) < 1:
            raise UserError(f"passages={tokens}: the prefix and special tokens take {tokens - room} tokens")
        return [[text] if count(text) <= tokens else list(self._cut(text, room, tokens, count)) for text in texts]

    def _cut(self, text: str, room: int, tokens: int, count: Callable[[str], int]) -> Iterator[str]:
        spans, at = self._spans(text), 0
        while at < len(spans):
            end = min(at + room, len(spans))
            while True:
                stop = _word_end(text, spans, at, end)
                passage = text[spans[at][0] : spans[stop - 1][1]]
                over = count(passage) - tokens  # A word may have other tokens at the beginning of a text.
                if over <= 0 or stop == at + 1:
                    break
                end = max(at + 1, stop - over)
            yield passage
            at = stop

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the first character and the end of each token of a text."""
        self._backend.no_padding()
        self._backend.no_truncation()
        spans: list[tuple[int, int]] = self._backend.encode(text, add_special_tokens=False).offsets
        return spans

    def _single(self, text: str) -> list[int]:
        return [int(i) for i in self._tokenizer(text)["input_ids"]]

    def _encode(self, inputs: list[Any], limit: int) -> Iterator[tuple[list[int], list[int], bool]]:
        if self._backend is None:
            yield from (self._slowly(text, limit) for text in inputs)
            return
        self._backend.no_padding()
        self._backend.enable_truncation(limit)
        encode = getattr(self._backend, "encode_batch_fast", self._backend.encode_batch)
        for encoding in encode(inputs, add_special_tokens=True):
            yield encoding.ids, encoding.type_ids, bool(encoding.overflowing)

    def _slowly(self, text: Any, limit: int) -> tuple[list[int], list[int], bool]:
        parts = text if isinstance(text, tuple) else (text,)
        whole = self._tokenizer(*parts, verbose=False)["input_ids"]
        if len(whole) <= limit:
            cut = self._tokenizer(*parts, return_token_type_ids=True)
        else:
            cut = self._tokenizer(*parts, truncation=True, max_length=limit, return_token_type_ids=True)
        return list(cut["input_ids"]), list(cut["token_type_ids"]), len(whole) > limit


def _word_end(text: str, spans: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """Return the last token up to `end` that a new word follows, or `end` if one word takes all tokens."""
    if end == len(spans):
        return end
    for stop in range(end, begin, -1):
        first = spans[stop][0]
        if text[first : first + 1].isspace() or text[first - 1 : first].isspace():
            return stop
    return end


def pad_token(tokenizer: Any) -> int:
    """Return the id that pads short texts. If a tokenizer has none, any token works because it is masked."""
    known = [tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id, 0]
    return int(next(i for i in known if i is not None))


def padded(ids: Sequence[Ids], pad: int) -> npt.NDArray[np.int64]:
    """Return the ids as one matrix, padded on the right to the longest row.

    Multiples of 8 would cost more than they gain.
    """
    longest = max(len(row) for row in ids)
    matrix = np.full((len(ids), longest), pad, dtype=np.int64)
    for row, values in zip(matrix, ids, strict=True):
        row[: len(values)] = values
    return matrix
