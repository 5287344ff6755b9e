"""Convert pairs to token ids.

If a pair is too long, each text gets half of the room, and tokens that one text does not need go to the other. Dropping
a whole text would compare with something else than the query or the document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.errors import UserError
from r2med.models.crossencoders.reranker_cards import RerankerCard
from r2med.models.encoders.tokenize import TEXTS_AT_ONCE, Ids, Tokens, pad_token

Pair = tuple[str, str]
"""A query and a document."""

GAP_TEXT = "..."
"""Mark in place of the removed middle of a query. Without it, two halves of words could become a third word."""

PROBE_PAIR = ("heart", "lung")


@dataclass(frozen=True)
class Join:
    """The tokens before, between and after the two parts of a pair, with the part that each token belongs to."""

    before: Ids
    between: Ids
    after: Ids
    types: tuple[Ids, Ids, Ids] | None = None

    def __len__(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


class PairTokenizer:
    """A model's tokenizer for the pairs of a card. A query is tokenized once for all its documents."""

    def __init__(self, tokenizer: Any, card: RerankerCard, instruction: Instruction, limit: int, types: bool) -> None:
        self._tokenizer = tokenizer
        self._card = card
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._special = special_tokens(tokenizer) if card.join == "none" else None
        self._around = card.query_parts(instruction)
        self._head_size = len(self._encode([self._around[0]])[0])
        self._gap = self._encode([GAP_TEXT])[0]
        self._tail = self._encode([self._around[1]])[0]
        self._join = self._joined_by(card, types)
        self.pad = pad_token(tokenizer)
        self._room = limit - len(self._join)
        if self._room // 2 <= len(self._encode(["".join(self._around)])[0]):
            raise UserError(
                f"reranker {card.name}: a limit of {limit} tokens leaves no room for a query and a document"
            )

    def __call__(self, pairs: Sequence[Pair]) -> Tokens:
        """Return the ids of each pair within the limit."""
        before, after = self._around
        queries = self._distinct([query for query, _ in pairs], before, after)
        documents = self._distinct([document for _, document in pairs], self._card.document.removesuffix("{document}"))
        # The text after a query in its template stays when the query is cut. Only words of the query itself are
        # removed.
        long = [query for query, ids in queries.items() if len(ids) > self._room // 2]
        bare = self._distinct(long, before)
        tokens = Tokens()
        for query, document in pairs:
            self._add(tokens, queries[query], bare.get(query), documents[document])
        return tokens

    def _add(self, tokens: Tokens, query: Ids, bare: Ids | None, document: Ids) -> None:
        kept, kept_document = shares(len(query), len(document), self._room)
        tokens.cut.append(kept < len(query) or kept_document < len(document))
        if kept < len(query) and bare is not None:
            query = self._shortened(bare, kept)
        document = document[:kept_document]
        join = self._join
        ids = np.concatenate([join.before, query, join.between, document, join.after])
        # For two empty texts, a tokenizer without special tokens gives no ids, which no model can read.
        tokens.ids.append(ids if len(ids) else np.asarray([self.pad], dtype=np.int32))
        if join.types:
            first, second = np.zeros(len(query), dtype=np.int32), np.ones(len(document), dtype=np.int32)
            tokens.types.append(np.concatenate([join.types[0], first, join.types[1], second, join.types[2]]))

    def _shortened(self, bare: Ids, size: int) -> Ids:
        """Return a query of `size` tokens with its template around it.

        `bare` contains only the text before the query.
        """
        size = min(size - len(self._tail), len(bare))
        end = (size - self._head_size - len(self._gap)) // 2 if self._card.cut_query == "middle" else 0
        if end <= 0:
            return np.concatenate([bare[:size], self._tail])
        return np.concatenate([bare[: size - len(self._gap) - end], self._gap, bare[-end:], self._tail])

    def _distinct(self, texts: Sequence[str], before: str, after: str = "") -> dict[str, Ids]:
        distinct = list(dict.fromkeys(texts))
        encoded = self._encode([before + self._inert(text) + after for text in distinct])
        return dict(zip(distinct, encoded, strict=True))

    def _inert(self, text: str) -> str:
        """Return a text that cannot end its turn in a prompt. For example, `<|im_end|>` in it becomes `< |im_end|>`."""
        return self._special.sub(lambda token: f"{token[0][0]} {token[0][1:]}", text) if self._special else text

    def _encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the ids of each text alone, without special tokens and without cutting."""
        encoded: list[Ids] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            chunk = list(texts[start : start + TEXTS_AT_ONCE])
            if self._backend is None:
                rows = [self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] for text in chunk]
            else:
                self._backend.no_padding()
                self._backend.no_truncation()
                encode = getattr(self._backend, "encode_batch_fast", self._backend.encode_batch)
                rows = [encoding.ids for encoding in encode(chunk, add_special_tokens=False)]
            encoded += [np.asarray(row, dtype=np.int32) for row in rows]
        return encoded

    def _joined_by(self, card: RerankerCard, types: bool) -> Join:
        if card.join == "tokenizer":
            return self._own_join(types)
        before, after = self._encode([card.before, card.after])
        match card.join:
            case "none":
                return Join(before, before[:0], after)
            case "bos":
                if self._tokenizer.bos_token_id is None:
                    raise UserError(f"reranker {card.name}: the tokenizer has no beginning-of-sequence token")
                start = np.asarray([self._tokenizer.bos_token_id], dtype=np.int32)
                return Join(np.concatenate([before, start]), start, after)
            case other:
                assert_never(other)

    def _own_join(self, types: bool) -> Join:
        """Return the tokens that the tokenizer puts around a pair.

        This is tested, because releases declare it differently.
        """
        whole = self._tokenizer(*PROBE_PAIR, return_token_type_ids=True)
        ids = [int(i) for i in whole["input_ids"]]
        kinds = np.asarray(whole["token_type_ids"], dtype=np.int32)
        first, second = ([int(i) for i in row] for row in self._encode(PROBE_PAIR))
        start = _position(first, ids, 0)
        middle = -1 if start < 0 else _position(second, ids, start + len(first))
        if middle < 0:
            raise UserError(f"reranker {self._card.name}: its tokenizer does not join pairs of texts")
        cuts = [(0, start), (start + len(first), middle), (middle + len(second), len(ids))]
        parts = [np.asarray(ids[a:b], dtype=np.int32) for a, b in cuts]
        typed = types and "token_type_ids" in self._tokenizer.model_input_names
        of_parts = (kinds[: cuts[0][1]], kinds[cuts[1][0] : cuts[1][1]], kinds[cuts[2][0] :]) if typed else None
        return Join(parts[0], parts[1], parts[2], of_parts)


def shares(query: int, document: int, room: int) -> tuple[int, int]:
    """Return how many tokens of a query and of a document are kept, like "longest first" of the libraries.

    Each text gets half of the room, plus tokens that the other does not need. An odd token goes to the longer text.
    """
    if query + document <= room:
        return query, document
    if 2 * query <= room:
        return query, room - query
    if 2 * document <= room:
        return room - document, document
    half, longer = room // 2, room - room // 2
    return (longer, half) if query > document else (half, longer)


def special_tokens(tokenizer: Any) -> re.Pattern[str] | None:
    """Return a pattern that finds tokens such as <|im_end|> and </think>, or None if the tokenizer has none."""
    tokens = sorted(map(str, tokenizer.added_tokens_decoder.values()), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, tokens))) if tokens else None


def _position(part: list[int], ids: list[int], start: int) -> int:
    starts = range(start, len(ids) - len(part) + 1)
    return next((position for position in starts if ids[position : position + len(part)] == part), -1)
