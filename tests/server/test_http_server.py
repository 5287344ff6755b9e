"""The server as a person starts it: a real process, a real port, real signals, and clients that mean no good."""

import json
import signal
import socket
import threading
from contextlib import ExitStack

import pytest

from r2med.foundation.core.errors import UserError
from r2med.server.http_server import bind
from support.datasets import r2med_folder
from support.processes import PATIENCE, wait_for
from support.serving import SearchR1Client, gated_model, serving

BODY = {"queries": ["iron"], "topk": 1, "return_scores": True}
DEMO = "demo/IIYi-Clinical"
HEAD = b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
HALF_A_BODY = HEAD % 100 + b'{"queries'


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def demo(home):
    with serving(DEMO, R2MED_HOME=home) as server:
        yield server


def connect(server, sent=b""):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    connection.sendall(sent)
    return connection


def read_to_the_end(connection):
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def as_http(body, **headers):
    encoded = json.dumps(body).encode()
    lines = ["POST /retrieve HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(encoded)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + encoded


# --- the socket


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_an_address_that_others_can_reach_needs_a_token(host):
    with pytest.raises(UserError, match="set R2MED_SERVE_TOKEN"):
        bind(host, 0, None)
    bind(host, 0, "token").socket.close()


def test_a_free_port_is_chosen_and_stands_in_the_url():
    listener = bind("localhost", 0, None)
    port = listener.socket.getsockname()[1]
    listener.socket.close()
    assert listener.url == f"http://127.0.0.1:{port}"
    assert port > 0


def test_a_port_in_use_is_a_user_error_when_it_is_bound_or_when_it_listens():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
            bind("127.0.0.1", port, None)
    first = bind("127.0.0.1", 0, None)
    port = first.socket.getsockname()[1]
    second = bind("127.0.0.1", port, None)  # allowed, as long as neither listens
    first.listen()
    with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
        second.listen()
    first.socket.close()
    second.socket.close()


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1", "a" * 300])
def test_an_address_of_another_machine_is_a_user_error(host):
    with pytest.raises(UserError, match="of this machine"):
        bind(host, 0, "token")


# --- serving


def test_the_ready_line_begins_with_the_page_and_has_the_dataset_and_the_retriever(demo):
    url = f"http://127.0.0.1:{demo.port}"
    about = f"{DEMO}, 68 documents, bm25 · agents: POST {url}/retrieve"
    assert demo.ready == f"{url}/ searches with bm25 · {about} · Ctrl-C stops"


def test_a_client_like_search_r1_s_is_served(demo):
    with demo.client() as http:
        agent = SearchR1Client(http, "/retrieve", topk=2)
        bulbar, nothing = agent.batch_search(["slurred speech and choking on liquids", "zzzz"])
        first, second = (line for line in bulbar.splitlines() if line.startswith("Doc "))
        assert first.startswith("Doc 1(Title: Basic information: ")
        assert second.startswith("Doc 2(Title: Basic information: ")
        assert "Chief complaint: Slurred speech" in bulbar
        assert nothing == ""
        assert agent.batch_search([]) == []
        assert len(agent.batch_search(["fever"] * 64)) == 64


def test_simultaneous_clients_each_get_their_own_answer(demo):
    words = ["fever", "cough", "headache", "rash", "seizure", "jaundice", "anemia", "pain"]
    with demo.client() as http:
        alone = {word: http.post("/retrieve", json={**BODY, "queries": [word]}).content for word in words}
    wrong = []

    def ask(word):
        with demo.client() as http:
            for _ in range(5):
                if http.post("/retrieve", json={**BODY, "queries": [word]}).content != alone[word]:
                    wrong.append(word)

    threads = [threading.Thread(target=ask, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("chunked", [False, True])
def test_ten_megabytes_are_refused_and_the_client_can_read_why(demo, chunked):
    body = b" " * 10_000_000
    with demo.client() as http:
        content = (body[at : at + 65_536] for at in range(0, len(body), 65_536)) if chunked else body
        answer = http.post("/retrieve", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert answer.json() == {"detail": "the request is too large; this server accepts 1,048,576 bytes"}
        assert http.post("/retrieve", json=BODY).status_code == 200


def test_a_wrong_content_length_harms_nobody(demo):
    body = json.dumps(BODY).encode()

    def answer_to(sent):
        """Return the answer to bytes after which nothing more comes."""
        with connect(demo, sent) as connection:
            connection.shutdown(socket.SHUT_WR)
            return read_to_the_end(connection)

    assert answer_to(HEAD % 10 + body).startswith(b"HTTP/1.1 400")
    answer_to(HEAD % (len(body) + 10) + body)  # the server waits for more, and nobody is left to read an answer
    assert answer_to(b"\x16\x03\x01 this is not HTTP\r\n\r\n").startswith(b"HTTP/1.1 400")
    with demo.client() as http:
        assert http.get("/health").json()["status"] == "ok"


def test_the_log_has_no_query_strings_which_may_hold_a_token(home):
    with serving(DEMO, "--access-log", R2MED_HOME=home) as server, server.client() as http:
        assert http.get("/health?token=planted").status_code == 200
        code, written = server.stop()
    assert code == 0
    assert "GET /health HTTP" in written
    assert "planted" not in written


def test_idle_connections_do_not_keep_others_out(demo):
    with ExitStack() as stack:
        for number in range(60):
            stack.enter_context(connect(demo, (b"", b"GET /hea", HALF_A_BODY)[number % 3]))
        client = stack.enter_context(demo.client())
        assert client.post("/retrieve", json=BODY).status_code == 200


def test_a_body_that_is_not_completed_is_a_408(home):
    with (
        serving(DEMO, limits={"BODY_SECONDS": 1}, R2MED_HOME=home) as server,
        connect(server, HALF_A_BODY) as connection,
    ):
        head, _, body = read_to_the_end(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert json.loads(body) == {"detail": "the request did not arrive within 1 seconds"}


# --- stopping


@pytest.mark.slow
def test_a_stopped_server_exits_with_0_and_without_a_word(home):
    with serving(DEMO, "--access-log", R2MED_HOME=home) as server, server.client() as http:
        http.get("/health", params={"token": "s3cret"})
        code, written = server.stop(signal.SIGINT)  # with a connection open
    assert code == 0
    assert "Traceback" not in written
    assert '"GET /health HTTP/1.1" 200' in written  # what --access-log is for
    assert "s3cret" not in written


@pytest.mark.slow
def test_a_busy_server_refuses_what_it_cannot_serve_and_finishes_the_running_search_when_stopped(tmp_path):
    secret = "s3cret-token"
    gate = tmp_path / "gate"
    arguments = "--retriever py:gated_model:Gated --host 0.0.0.0".split()
    limits = {"MAX_WAITING": 1, "GRACE_SECONDS": 60}
    changes = {"R2MED_HOME": tmp_path / "home", "R2MED_SERVE_TOKEN": secret, **gated_model(tmp_path)}
    with serving(r2med_folder(tmp_path / "set"), *arguments, limits=limits, **changes) as server:
        headers = {"Authorization": f"Bearer {secret}"}
        answers = {}
        with server.client() as stranger, server.client(headers=headers) as known:
            assert stranger.post("/retrieve", json=BODY).status_code == 401
            failed = known.post("/retrieve", json={"queries": ["fail"]})
            assert (failed.status_code, "secret internals" in failed.text) == (500, False)

            def ask(text):
                with server.client(headers=headers) as http:
                    answers[text] = http.post("/retrieve", json={"queries": [text]})

            running = threading.Thread(target=ask, args=("wait",))
            behind = threading.Thread(target=ask, args=("behind",))
            running.start()
            wait_for(gate.with_suffix(".reached").exists)
            with connect(server, as_http({"queries": ["leaving"]}, **headers)):
                wait_for(lambda: waiting(known) == 1)
            wait_for(lambda: waiting(known) == 0)  # a client that leaves makes room
            behind.start()
            wait_for(lambda: waiting(known) == 1)  # and a busy server still answers
            full = known.post("/retrieve", json=BODY)
            assert (full.status_code, full.headers["Retry-After"]) == (503, "1")
            assert list(full.json()) == ["detail"]
            server.process.send_signal(signal.SIGTERM)
            behind.join()
            gate.touch()
            running.join()
        out, err = server.process.communicate()
    assert answers["wait"].status_code == 200
    assert answers["behind"].status_code == 503
    assert "stopping" in answers["behind"].json()["detail"]
    assert server.process.returncode == 0
    assert "Traceback" not in err and secret not in out + err
    assert "a search failed" in err


def waiting(client):
    return client.get("/health").json()["waiting"]


@pytest.mark.slow
def test_a_stopped_server_waits_neither_for_a_search_that_hangs_nor_for_a_request_that_does_not_come(tmp_path):
    model = gated_model(tmp_path)  # and nobody opens the gate
    command = (r2med_folder(tmp_path / "set"), "--retriever", "py:gated_model:Gated")
    with serving(*command, limits={"GRACE_SECONDS": 1}, R2MED_HOME=tmp_path / "home", **model) as server:
        answers = []

        def ask():
            with server.client() as http:
                answers.append(http.post("/retrieve", json={"queries": ["wait"]}))

        thread = threading.Thread(target=ask)
        thread.start()
        wait_for((tmp_path / "gate.reached").exists)
        with connect(server, HALF_A_BODY):
            code, written = server.stop(signal.SIGTERM)
        thread.join()
    assert code == 0
    assert "Traceback" not in written
    assert (answers[0].status_code, answers[0].json()) == (503, {"detail": "the server is stopping"})
