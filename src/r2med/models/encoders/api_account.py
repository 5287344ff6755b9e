"""The account of a user at an API of models: its address, and the environment variables of address and key."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, field_validator


class ApiAccount(BaseModel):
    """What cards of embedding APIs and of rerank APIs share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Name of the API. It is the `loader` of the cards of its models."""
    account: str = ""
    """The name in its environment variables, as in ACCOUNT_API_KEY. Default: the name of the API."""
    urls: tuple[tuple[str, str], ...] = ()
    """Pairs of (beginning of a key, base URL for such keys). The first match is used. Empty for a server of the user's
    own, whose address is in the environment variable ACCOUNT_BASE_URL.
    """

    @field_validator("urls")
    @classmethod
    def _last_url_is_for_every_key(cls, urls: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        if urls and urls[-1][0]:
            raise ValueError('the last address must be for every key, as in ["", "https://HOST/v1"]')
        return urls

    @property
    def key_variable(self) -> str:
        """The environment variable with the key."""
        return f"{self._place}_API_KEY"

    @property
    def url_variable(self) -> str:
        """The environment variable with the base URL."""
        return f"{self._place}_BASE_URL"

    @property
    def _place(self) -> str:
        return (self.account or self.name).replace("-", "_").upper()

    def url(self, key: str) -> str:
        """Return the provider's own base URL for a key."""
        return next(url for beginning, url in self.urls if key.startswith(beginning))
