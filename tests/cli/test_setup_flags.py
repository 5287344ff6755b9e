"""The flags are made from the fields of Setup, and errors name them."""

import inspect

import pytest

from r2med import UserError
from r2med.cli.setup_flags import setup_parameter
from r2med.foundation.runtime.setup import Setup, flag_of, printed_bytes
from r2med.models.encoders.devices import devices


def test_each_flag_has_the_default_and_the_help_of_its_field():
    for name, field in Setup.model_fields.items():
        if not flag_of(name).panel:
            continue
        parameter = setup_parameter(name)
        [option] = parameter.annotation.__metadata__
        assert option.help == flag_of(name).help
        default = printed_bytes(field.default) if name == "memory" else field.default
        assert parameter.default == (None if default in ("", (), None) else default)
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


def test_an_error_names_the_field_and_the_flag_in_python_and_on_the_command_line(r2med):
    with pytest.raises(UserError) as caught:
        devices("cuda:99")
    assert "device (--device auto)" in str(caught.value)
    done = r2med("run", "minilm", "--device", "cuda:99", "--data", "demo/Biology")
    assert done.returncode == 2 and str(caught.value) in done.stderr
