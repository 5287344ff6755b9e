"""Keys: everything that a result depends on, ready for JSON. Values equal to their defaults are left out only here.

So a setting that is added later changes no key. For the same reason a default must stay as it is. If you change one,
also change the name of the setting, or a version in the key of the stage.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def changed_values(declared: BaseModel | DataclassInstance, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a declared value that differ from their defaults, without those named in `but`."""
    if isinstance(declared, BaseModel):
        return declared.model_dump(mode="json", exclude={*but}, exclude_defaults=True)
    return {
        field.name: _ready(value)
        for field in dataclasses.fields(declared)
        if field.name not in but and (value := getattr(declared, field.name)) != _default(field)
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _ready(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_ready(each) for each in value]
    return changed_values(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
