"""Store artefacts on disk: content-addressed, atomic, verified, safe with several processes."""

from r2med.store.artefacts import Artefact, Store, default_store
from r2med.store.dataset_labels import about
from r2med.store.files import digest
from r2med.store.live_store import LiveStore

__all__ = ["Artefact", "LiveStore", "Store", "about", "default_store", "digest"]
