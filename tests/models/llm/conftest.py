"""Fixtures for tests of LLMs behind an endpoint."""

import pytest

from support.chat_server import Server


@pytest.fixture
def server(chat_server: Server) -> Server:
    return chat_server
