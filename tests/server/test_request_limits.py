"""Limits are positive numbers."""

import pytest

from r2med.core.errors import UserError
from r2med.server.request_limits import Limits


@pytest.mark.parametrize("field", ["topk", "seconds", "connections"])
def test_a_limit_below_one_is_a_user_error(field):
    with pytest.raises(UserError, match=f"limit of {field} must be at least 1, not 0"):
        Limits(**{field: 0})
