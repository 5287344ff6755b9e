"""An encoder whose model is behind an API: texts are cut, looked up, sent in batches, and kept as they come back."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from r2med.cost import Cost
from r2med.data.dataset_cards import Instruction
from r2med.encoders.api.answers import check_dimension
from r2med.encoders.api.cache import Cache
from r2med.encoders.api.endpoint import endpoint
from r2med.encoders.api.providers import PROVIDERS
from r2med.encoders.api.requests import Found, Parcel, Requests
from r2med.encoders.api.tokens import Ruler, Tokenizer
from r2med.encoders.api.usage import Usage
from r2med.encoders.encoder import Encoded, Role, Vectors, timed
from r2med.encoders.model_cards import ModelCard
from r2med.errors import UserError
from r2med.net.http import run_sync
from r2med.net.retry import Policy
from r2med.setup import Setup
from r2med.store import Store, default_store, digest
from r2med.store.files import exclusive
from r2med.text.unicode import to_unicode


class ApiEncoder:
    """Encodes with a provider's model.

    Nothing is sent and no key is needed until a text is not in the cache. Answers that were paid for are used even
    by a run that starts over: they depend on nothing that is made here.
    """

    def __init__(
        self,
        card: ModelCard,
        instruction: Instruction,
        options: Setup,
        store: Store | None = None,
        policy: Policy | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        if card.loader not in PROVIDERS:
            raise UserError(f"{card.spec} is no API model: its loader is {card.loader!r}")
        self._card, self._instruction, self._policy = card, instruction, policy or Policy()
        self._provider = provider = PROVIDERS[card.loader]
        self._endpoint = endpoint(provider.name, provider.key_variable, provider.url_variable, options)
        self._ruler = Ruler(lambda: tokenizer or provider.load_tokenizer(self._model("document")), provider.overhead)
        self._store = store  # None where only a description is wanted
        self._budget = options.budget
        self._usage = Usage()
        self._lock = threading.Lock()  # one call at a time: counts and budget belong to all
        if options.budget.limit is not None and "price_per_million_tokens" not in card.model_fields_set:
            raise UserError(
                f"{card.spec} has no price_per_million_tokens in its card, so no budget can be kept: "
                "add it (0 where it is free), or run without a budget"
            )

    def _folder(self) -> Path:
        return (self._store or default_store()).root / "api"

    def describe(self, role: Role) -> dict[str, Any]:
        """Return all that the vectors of a role depend on; the server only as a hash, since a URL may hold secrets."""
        side = self._card.side(role)
        return {
            **self._identity(role),
            "prefix": side.prefix_for(self._instruction),
            "max_tokens": side.max_tokens,
            "dimension": self._card.dimension,
            "normalise": self._card.normalise,
        }

    @timed
    def encode(self, texts: Sequence[str], role: Role) -> Encoded:
        """Return one finite row per text, in order; what is not in the cache is sent, each distinct text once."""
        with self._lock, Cache(self._folder() / f"{self._provider.name}.sqlite") as cache:
            sent, truncated = self._as_sent(texts, role)
            keys = self._keys(sent, role)
            text_of = dict(zip(keys, sent, strict=True))
            found = self._sound(cache.get(list(text_of)))
            fetched: Found = {}
            if len(found) < len(text_of):
                # One process at a time: what two would ask for at once, both would pay, and their account's rate
                # limit is one. A process that is killed lets go of the lock.
                with exclusive(self._folder() / f"{digest(self._identity(role))}.lock"):
                    found = self._sound(cache.get(list(text_of)))
                    missing = {key: text for key, text in text_of.items() if key not in found}
                    fetched = self._fetch(missing, role, cache)
            self._usage.count(len(texts), truncated, [found[key][1] for key in keys if key in found])
            rows = found | fetched
            tokens = sum(rows[key][1] for key in text_of)
            dollars = tokens * self._card.price_per_million_tokens / 1e6
            cost = Cost(texts=len(texts), tokens=tokens, cut=truncated, dollars=dollars)
            return Encoded(self._rows([rows[key][0] for key in keys]), cost)

    def usage(self) -> dict[str, float]:
        """Return what this encoder used so far, and paid for in this process."""
        return self._usage.as_dict()

    def _fetch(self, texts: Mapping[bytes, str], role: Role, cache: Cache) -> Found:
        parcels = [Parcel(key, text, self._ruler.bound(text)) for key, text in texts.items()]
        requests = Requests(self._provider, self._endpoint, self._policy, self._budget, self._usage, cache, self._card)
        side = self._card.side(role)
        return run_sync(requests.fetch(parcels, self._model(role), side.input_type)) if parcels else {}

    def _as_sent(self, texts: Sequence[str], role: Role) -> tuple[list[str], int]:
        side = self._card.side(role)
        prefix = side.prefix_for(self._instruction)
        whole = [_sendable(prefix + text) for text in texts]
        sent = [self._ruler.cut(text, side.max_tokens) for text in whole]
        return sent, sum(len(short) < len(text) for short, text in zip(sent, whole, strict=True))

    def _identity(self, role: Role) -> dict[str, str]:
        """Return what a provider's answer depends on besides the text."""
        return {
            "provider": self._provider.name,
            "model": self._model(role),
            "endpoint": self._endpoint.identity,
            "input_type": self._card.side(role).input_type,
        }

    def _keys(self, sent: Sequence[str], role: Role) -> list[bytes]:
        settings = digest(self._identity(role)).encode()
        return [hashlib.sha256(settings + hashlib.sha256(text.encode()).digest()).digest() for text in sent]

    def _model(self, role: Role) -> str:
        return self._card.side(role).repository or self._card.repository or self._card.name

    def _sound(self, found: Found) -> Found:
        """Leave out rows of another dimension: they were kept when the card said something else."""
        expected = self._card.dimension
        return {key: row for key, row in found.items() if not expected or len(row[0]) == expected}

    def _rows(self, rows: list[Vectors]) -> Vectors:
        dimension = check_dimension(rows, self._card.dimension, self._provider.name, self._card.spec)
        out = np.array(rows, dtype=np.float32).reshape(len(rows), dimension)
        if self._card.normalise:
            lengths = np.linalg.norm(out, axis=1, keepdims=True)
            out /= np.where(lengths > 0, lengths, 1)
        return out


def _sendable(text: str) -> str:
    """Return a text that any API takes: lone surrogates have no UTF-8, and an empty input is refused."""
    return to_unicode(text) or " "
