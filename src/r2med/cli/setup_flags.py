"""The flags of the fields of Setup, and the Setup that they make."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from r2med.cli import completion
from r2med.cli.help_pages import metavar
from r2med.foundation.core.errors import UserError


def setup_parameter(name: str, help: str = "") -> inspect.Parameter:
    """Return the parameter of a command that sets a field of Setup, with the field's help and default."""
    from r2med.foundation.runtime.setup import Setup, flag_names, flag_of, printed_bytes

    flag, default = flag_of(name), Setup.model_fields[name].default
    kind: Any = list[str] if flag.is_list else flag.kind or type(default)
    option = typer.Option(
        *flag_names(name),
        metavar=metavar(flag, kind),
        help=help or flag.help,
        show_default=flag.show_default,
        rich_help_panel=flag.panel,
        autocompletion=getattr(completion, flag.completion) if flag.completion else None,
        hidden=flag.is_rare,
    )
    default = printed_bytes(default) if name == "memory" else default
    if default in ("", (), None):  # None means that a flag was not typed; an empty text was typed
        kind, default = kind | None, None
    typed: Any = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=typed, default=default)


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of Setup that were typed."""
    given = {name: value for name, value in settings.items() if value is not None}
    if "base_url" in given:
        given["base_url"] = given["base_url"].strip()
        if not given["base_url"]:
            raise UserError("--base-url is empty: give the address of an endpoint, such as http://localhost:8000/v1")
    return given
