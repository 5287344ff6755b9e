"""`r2med serve`: a mistake is one line and exit code 2, before any work is done."""

import socket

import pytest

from r2med.foundation.core.installation import install_extra
from support.facts import states
from support.processes import python


def assert_one_line(done, *facts):
    lines = [line for line in done.stderr.splitlines() if not line.startswith("[1/1]")]  # progress
    assert done.returncode == 2, done.stderr
    states("\n".join(lines), *facts)
    assert not done.stdout


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["demo/Biolgy"], ["demo/Biolgy", "demo/Biology?"]),
        (["demo/Biology", "--retriever", "hyde(author) → bm25"], ["hyde(author) → bm25", "single retriever"]),
        (["demo/Biology", "--host", "0.0.0.0"], ["0.0.0.0", "R2MED_SERVE_TOKEN"]),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, facts, r2med):
    done = r2med("serve", *arguments, "--port", "0", R2MED_HOME=tmp_path, R2MED_SERVE_TOKEN=" ")
    assert_one_line(done, *facts)


def test_a_port_in_use_is_reported_before_the_corpus_is_indexed(tmp_path, r2med):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = r2med("serve", "demo/Biology", "--port", port, R2MED_HOME=tmp_path)
    assert_one_line(done, port, "127.0.0.1", "in use", "--port")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['mcp'] = None; from r2med.cli import main; main()"
    ended = python(code, "serve", "demo/Biology", "--mcp", "http", R2MED_HOME=tmp_path)
    assert_one_line(ended, "--mcp http", install_extra("mcp"))
