"""The flags are made from the fields of Setup, and errors name them."""

from typing import Any

import pytest

from r2med import UserError
from r2med.cli.app import command
from r2med.foundation.runtime.setup import Setup, flag_names, flag_of, printed_bytes
from r2med.models.encoders.devices import devices


def test_each_flag_has_the_default_and_the_help_of_its_field():
    application: Any = command()
    options = {option.name: option for option in application.commands["run"].params}
    fields = {name: field for name, field in Setup.model_fields.items() if name in options}
    assert len(fields) > 15
    for name, field in fields.items():
        option = options[name]
        assert option.help == flag_of(name).help
        default = printed_bytes(field.default) if name == "memory" else field.default
        assert option.default == (None if default in ("", (), None) else default)
        assert set(option.opts) == set(flag_names(name))


def test_an_empty_address_is_refused_and_spaces_around_one_are_not_part_of_it(r2med):
    done = r2med("run", "hyde(any) → bm25", "--base-url", " ", "--data", "demo/Biology")
    assert done.returncode == 2 and "base_url (--base-url ' '): give the address of an endpoint" in done.stderr
    assert flag_of("base_url").read(" http://localhost:1/v1 ") == "http://localhost:1/v1"


def test_an_error_names_the_field_and_the_flag_in_python_and_on_the_command_line(r2med):
    with pytest.raises(UserError) as caught:
        devices("cuda:99")
    assert "device (--device auto)" in str(caught.value)
    done = r2med("run", "minilm", "--device", "cuda:99", "--data", "demo/Biology")
    assert done.returncode == 2 and str(caught.value) in done.stderr
