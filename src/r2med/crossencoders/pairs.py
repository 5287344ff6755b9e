"""Pairs to token ids: the document is cut at the limit and the query kept, as far as there is room for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from r2med.crossencoders.contracts import Pair
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.data.dataset_cards import Instruction
from r2med.encoders.tokenize import AT_ONCE, Ids
from r2med.errors import UserError

LEAST = 64
"""Tokens of a document that a long query must leave room for; at most half of the room there is."""

PROBE = ("heart", "lung")


@dataclass(frozen=True)
class Join:
    """The tokens before, between and after the two parts of a pair, with the part that each belongs to."""

    before: Ids
    between: Ids
    after: Ids
    types: tuple[Ids, Ids, Ids] | None = None

    def __len__(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


@dataclass
class PairTokens:
    """The ids of some pairs, and which of them were cut."""

    ids: list[Ids] = field(default_factory=list)
    types: list[Ids] = field(default_factory=list)
    """Which part each token belongs to; empty for models that do not ask."""
    truncated: list[bool] = field(default_factory=list)

    def lengths(self) -> list[int]:
        """Return the number of tokens of each pair."""
        return [len(ids) for ids in self.ids]


class PairTokenizer:
    """A model's tokenizer for the pairs of a card. A query is tokenized once, however many documents it meets."""

    def __init__(self, tokenizer: Any, card: RerankerCard, instruction: Instruction, limit: int, types: bool) -> None:
        self._tokenizer, self._card = tokenizer, card
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._around = card.query_parts(instruction)
        self._tail = self._encode([self._around[1]])[0]
        self._join = self._joined_by(card, types)
        self.pad = pad_token(tokenizer)
        self._room = limit - len(self._join)
        if self._room // 2 <= len(self._encode(["".join(self._around)])[0]):
            raise UserError(
                f"reranker {card.name}: a limit of {limit} tokens leaves no room for a query and a document"
            )

    def __call__(self, pairs: Sequence[Pair]) -> PairTokens:
        """Return the ids of each pair within the limit."""
        before, after = self._around
        queries = self._distinct([query for query, _ in pairs], before, after)
        documents = self._distinct([document for _, document in pairs], self._card.document.removesuffix("{document}"))
        # What follows a query in its template stays when it is cut: only the query's own words go.
        long = [query for query, ids in queries.items() if len(ids) > self._room - min(LEAST, self._room // 2)]
        bare = self._distinct(long, before)
        found = PairTokens()
        for query, document in pairs:
            self._add(found, queries[query], bare.get(query), documents[document])
        return found

    def _add(self, found: PairTokens, query: Ids, bare: Ids | None, document: Ids) -> None:
        most = self._room - min(LEAST, len(document), self._room // 2)
        cut_query = bare is not None and len(query) > most
        if cut_query and bare is not None:
            query = np.concatenate([bare[: most - len(self._tail)], self._tail])
        left = self._room - len(query)
        found.truncated.append(cut_query or len(document) > left)
        document = document[:left]
        join = self._join
        ids = np.concatenate([join.before, query, join.between, document, join.after])
        # A tokenizer that adds nothing gives nothing for two empty texts, which no model can read.
        found.ids.append(ids if len(ids) else np.asarray([self.pad], dtype=np.int32))
        if join.types:
            first, second = np.zeros(len(query), dtype=np.int32), np.ones(len(document), dtype=np.int32)
            found.types.append(np.concatenate([join.types[0], first, join.types[1], second, join.types[2]]))

    def _distinct(self, texts: Sequence[str], before: str, after: str = "") -> dict[str, Ids]:
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self._encode([before + text + after for text in distinct]), strict=True))

    def _encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the ids of each text alone, without special tokens and uncut."""
        found: list[Ids] = []
        for start in range(0, len(texts), AT_ONCE):
            chunk = list(texts[start : start + AT_ONCE])
            if self._backend is None:
                rows = [self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] for text in chunk]
            else:
                self._backend.no_padding()
                self._backend.no_truncation()
                encode = getattr(self._backend, "encode_batch_fast", self._backend.encode_batch)
                rows = [encoding.ids for encoding in encode(chunk, add_special_tokens=False)]
            found += [np.asarray(row, dtype=np.int32) for row in rows]
        return found

    def _joined_by(self, card: RerankerCard, types: bool) -> Join:
        if card.join == "tokenizer":
            return self._own_join(types)
        before, after = self._encode([card.before, card.after])
        if card.join == "none":
            return Join(before, before[:0], after)
        if self._tokenizer.bos_token_id is None:
            raise UserError(f"reranker {card.name}: the tokenizer has no beginning-of-sequence token")
        start = np.asarray([self._tokenizer.bos_token_id], dtype=np.int32)
        return Join(np.concatenate([before, start]), start, after)

    def _own_join(self, types: bool) -> Join:
        """Return what the tokenizer puts around a pair, seen by giving it one: releases differ in how they say it."""
        whole = self._tokenizer(*PROBE, return_token_type_ids=True)
        ids = [int(i) for i in whole["input_ids"]]
        kinds = np.asarray(whole["token_type_ids"], dtype=np.int32)
        first, second = ([int(i) for i in row] for row in self._encode(PROBE))
        start = _place(first, ids, 0)
        middle = -1 if start < 0 else _place(second, ids, start + len(first))
        if middle < 0:
            raise UserError(f"reranker {self._card.name}: its tokenizer does not join pairs of texts")
        cuts = [(0, start), (start + len(first), middle), (middle + len(second), len(ids))]
        parts = [np.asarray(ids[a:b], dtype=np.int32) for a, b in cuts]
        told = types and "token_type_ids" in self._tokenizer.model_input_names
        found = (kinds[: cuts[0][1]], kinds[cuts[1][0] : cuts[1][1]], kinds[cuts[2][0] :]) if told else None
        return Join(parts[0], parts[1], parts[2], found)


def pad_token(tokenizer: Any) -> int:
    """Return what fills up short pairs; where a tokenizer names nothing, any token will do, since it is masked."""
    known = [tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id, 0]
    return int(next(i for i in known if i is not None))


def _place(part: list[int], ids: list[int], start: int) -> int:
    ends = range(start, len(ids) - len(part) + 1)
    return next((place for place in ends if ids[place : place + len(part)] == part), -1)
