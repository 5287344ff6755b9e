"""`r2med serve` as a person starts it: a real process, a real port, real signals."""

import json
import signal
import socket
import threading

import pytest

from support.datasets import r2med_folder
from support.processes import python, r2med, wait_for
from support.serving import SearchR1Client, gated_model, serving

QUESTION = {"queries": ["iron"], "topk": 1, "return_scores": True}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with serving("demo/IIYi-Clinical", "--access-log", R2MED_HOME=home) as server:
        yield server


def test_ready_it_says_where_what_and_how(demo):
    about = "demo/IIYi-Clinical, 68 documents, bm25 · Ctrl-C stops"
    assert demo.ready == f"http://127.0.0.1:{demo.port}/retrieve · {about}"


def test_search_r1_s_client_is_at_home(demo):
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


def test_clients_at_one_time_get_each_their_own(demo):
    words = ["fever", "cough", "headache", "rash", "seizure", "jaundice", "anemia", "pain"]
    with demo.client() as http:
        alone = {word: http.post("/retrieve", json={**QUESTION, "queries": [word]}).content for word in words}
    wrong = []

    def ask(word):
        with demo.client() as http:
            for _ in range(5):
                if http.post("/retrieve", json={**QUESTION, "queries": [word]}).content != alone[word]:
                    wrong.append(word)

    threads = [threading.Thread(target=ask, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("chunked", [False, True])
def test_ten_megabytes_are_refused_and_the_client_reads_why(demo, chunked):
    body = b" " * 10_000_000
    with demo.client() as http:
        content = (body[at : at + 65_536] for at in range(0, len(body), 65_536)) if chunked else body
        answer = http.post("/retrieve", content=content)
        assert answer.status_code == 413
        assert answer.json() == {"detail": "the request is larger than this server takes, 1,048,576 bytes"}
        assert http.post("/retrieve", json=QUESTION).status_code == 200


def raw(server, request):
    """Return what the server says to bytes after which nothing more comes."""
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65_536), b""))


def test_a_length_that_is_not_true_harms_nobody(demo):
    head = b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    body = json.dumps(QUESTION).encode()
    shorter = raw(demo, head % 10 + body)
    assert shorter.startswith(b"HTTP/1.1 400")
    raw(demo, head % (len(body) + 10) + body)  # it waits for more, and there is nobody left to tell
    assert raw(demo, b"\x16\x03\x01 this is not HTTP\r\n\r\n").startswith(b"HTTP/1.1 400")
    with demo.client() as http:
        assert http.get("/health").json()["status"] == "ok"


def test_stopped_it_ends_with_0_and_no_word(demo):
    """Last of the server that these tests share."""
    with demo.client() as http:
        http.get("/health")
        code, written = demo.stop(signal.SIGINT)  # with a connection open
    assert code == 0
    assert "Traceback" not in written
    assert '"POST /retrieve HTTP/1.1" 413' in written  # what --access-log is for


def test_a_busy_server_sends_away_whom_it_cannot_serve_and_finishes_what_runs_when_stopped(tmp_path):
    folder, secret = r2med_folder(tmp_path / "set"), "s3cret-token"
    model, gate = gated_model(tmp_path), tmp_path / "gate"
    command = (
        folder,
        "--retriever",
        "py:gated_model:Gated",
        "--max-waiting",
        "1",
        "--host",
        "0.0.0.0",
        "--grace",
        "60",
    )
    with serving(*command, R2MED_HOME=tmp_path / "home", R2MED_SERVE_TOKEN=secret, **model) as server:
        url, headers, answers = "/retrieve", {"Authorization": f"Bearer {secret}"}, {}
        with server.client() as http, server.client(headers=headers) as known:
            assert http.post(url, json=QUESTION).status_code == 401
            failed = known.post(url, json={"queries": ["fail"]})
            assert (failed.status_code, "secret internals" in failed.text) == (500, False)

            def ask(text):
                with server.client(headers=headers) as own:
                    answers[text] = own.post(url, json={"queries": [text]})

            threads = [threading.Thread(target=ask, args=(text,)) for text in ("wait", "behind")]
            threads[0].start()
            wait_for(gate.with_suffix(".reached").exists)
            with socket.create_connection(("127.0.0.1", server.port)) as leaving:
                leaving.sendall(_request(secret, {"queries": ["leaving"]}))
                wait_for(lambda: waiting(known) == 1)
            wait_for(lambda: waiting(known) == 0)  # whoever leaves makes room
            threads[1].start()
            wait_for(lambda: waiting(known) == 1)  # and busy is not dead
            full = known.post(url, json=QUESTION)
            assert (full.status_code, full.headers["Retry-After"]) == (503, "1")
            assert list(full.json()) == ["detail"]
            server.process.send_signal(signal.SIGTERM)
            threads[1].join()
            gate.touch()
            threads[0].join()
        out, err = server.process.communicate()
    assert answers["wait"].status_code == 200
    assert answers["behind"].status_code == 503
    assert "stopping" in answers["behind"].json()["detail"]
    assert server.process.returncode == 0
    assert "Traceback" not in err and secret not in out + err
    assert "a search failed" in err


def waiting(client):
    return client.get("/health").json()["waiting"]


def _request(token, question):
    body = json.dumps(question).encode()
    head = f"POST /retrieve HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["demo/Biolgy"], "did you mean demo/Biology"),
        (["demo/Biology", "--retriever", "hyde(author) → bm25"], "serve takes a retriever alone"),
        (["demo/Biology", "--host", "0.0.0.0", "--max-topk", "5"], "set R2MED_SERVE_TOKEN"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, says):
    done = r2med("serve", *arguments, "--port", "0", R2MED_HOME=tmp_path, R2MED_SERVE_TOKEN=" ")
    assert_one_line(done, says)


def test_a_port_in_use_is_one_line_and_told_before_the_work(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = r2med("serve", "demo/Biology", "--port", port, R2MED_HOME=tmp_path)
    assert_one_line(done, f"port {port} of 127.0.0.1 is in use: choose another with --port")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['uvicorn'] = None; from r2med.cli import main; main()"
    assert_one_line(python(code, "serve", "demo/Biology", R2MED_HOME=tmp_path), "pip install 'r2med[serve]'")


def assert_one_line(done, says):
    lines = [line for line in done.stderr.splitlines() if not line.startswith("[1/1]")]  # progress
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1 and says in lines[0]
    assert not done.stdout


def test_stopped_it_waits_neither_for_a_search_that_hangs_nor_for_a_request_that_does_not_come(tmp_path):
    model = gated_model(tmp_path)  # and nobody opens the gate
    command = (r2med_folder(tmp_path / "set"), "--retriever", "py:gated_model:Gated", "--grace", "1")
    with serving(*command, R2MED_HOME=tmp_path / "home", **model) as server:
        answers = []

        def ask():
            with server.client() as own:
                answers.append(own.post("/retrieve", json={"queries": ["wait"]}))

        thread = threading.Thread(target=ask)
        thread.start()
        wait_for((tmp_path / "gate.reached").exists)
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(b'POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"queries')
            code, written = server.stop(signal.SIGTERM)
        thread.join()
    assert code == 0
    assert "Traceback" not in written
    assert (answers[0].status_code, answers[0].json()) == (503, {"detail": "the server is stopping"})
