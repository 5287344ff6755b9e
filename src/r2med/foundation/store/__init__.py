"""Store artefacts on disk: content-addressed, atomic, verified, safe with several processes."""

from r2med.foundation.store.artefacts import Artefact, Store, default_store
from r2med.foundation.store.files import digest

__all__ = ["Artefact", "Store", "default_store", "digest"]
