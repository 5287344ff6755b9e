"""A Ray cluster of two nodes on this machine, each with its own store: the same results, even if workers die."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

import r2med
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine import ray_engine
from r2med.foundation.engine.work import WorkNeeds
from r2med.foundation.runtime.runtime import Runtime, open_engine
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import Encoder
from r2med.systems.rerank import pair_scores
from r2med.systems.retrieve.bm25 import index
from support.cluster_work import Squares, refused_look_up
from support.workspaces import Workspace

if importlib.util.find_spec("ray") is None:  # not imported yet: it reads its settings from the environment when it is
    pytest.skip("ray is not installed", allow_module_level=True)

pytestmark = pytest.mark.slow

SOURCE = Path(r2med.__file__).parents[1]
TESTS = Path(__file__).parents[2]
PATHS = os.pathsep.join(map(str, (SOURCE, TESTS)))
MODEL = "py:support.cluster_work:Letters"


class Nodes:
    """The cluster, and a way to add nodes."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.folder = folder
        self.cluster = Cluster()
        self.log = folder / "encoded.log"

    def join(self, name: str, source: Path = SOURCE, gpus: int = 0):
        variables = {
            "R2MED_HOME": str(self.folder / name),
            "PYTHONPATH": os.pathsep.join(map(str, (source, TESTS))),
            "R2MED_TEST_LOG": str(self.log),
        }
        return self.cluster.add_node(
            num_cpus=1,
            num_gpus=gpus,
            node_ip_address="127.0.0.1",
            include_dashboard=False,
            env_vars=variables,
            wait=True,
        )

    def forget(self) -> None:
        """Remove the vectors of earlier tests from the nodes: work that a node finds done is not logged."""
        for vectors in self.folder.glob("*/vectors"):
            shutil.rmtree(vectors)
        self.log.write_text("")


@pytest.fixture(scope="module")
def nodes():
    folder = Path(tempfile.mkdtemp(prefix="r2med"))  # short, for the names of sockets
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # loopback only; read when ray is imported
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", "a-token-of-at-least-thirty-two-letters")
        for setting in ("initial_delay", "period"):  # a node is dead after five checks, and their default is 3 s
            patch.setenv(f"RAY_health_check_{setting}_ms", "500")
        import ray

        running = Nodes(folder)
        for name in ("one", "two"):
            running.join(name)
        patch.setenv("RAY_ADDRESS", running.cluster.address)
        yield running
        ray.shutdown()
        running.cluster.shutdown()
    engine.cache_clear()
    shutil.rmtree(folder)


@pytest.fixture
def small(monkeypatch):
    """Use shards of few documents, so that a small corpus has many."""
    monkeypatch.setattr(Encoder, "shard_documents", 8)
    monkeypatch.setattr(index, "SEGMENT_DOCUMENTS", 16)
    monkeypatch.setattr(pair_scores, "PAIRS_PER_CHUNK", 100)


def evaluate(workspace, engine):
    systems = ["rm3 → bm25", MODEL, f"bm25+{MODEL} → py:support.cluster_work:SharedWords"]
    setup = Runtime(store=Store(workspace.home), engine=engine)
    results = r2med.run(systems, "demo/MedQA-Diag", out=workspace.out, setup=setup)
    assert not results.errors
    return workspace.outcome()


def test_records_are_the_same_as_on_one_machine_and_only_the_command_stores_results(nodes, small, tmp_path):
    expected = evaluate(Workspace(tmp_path / "threads"), "threads")
    assert len(expected) == 6  # for each system a record and a run
    assert evaluate(Workspace(tmp_path / "ray"), "ray") == expected
    workers = {line.split()[0] for line in nodes.log.read_text().splitlines()} - {str(os.getpid())}
    assert len(workers) == 2  # both of them worked
    assert not [path for kind in ("vectors", "bm25-postings") for path in nodes.folder.glob(f"*/{kind}")]
    shared = Workspace(tmp_path / "shared")
    shared.root.mkdir()
    (nodes.folder / "two").mkdir(exist_ok=True)
    shared.home.symlink_to(nodes.folder / "two")  # the store of one node is the driver's own
    assert evaluate(shared, "ray") == expected


def test_nothing_listens_on_other_interfaces_and_the_token_is_required(nodes):
    import psutil

    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = {
        connection.laddr.ip
        for process in family
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    end = command("bm25", RAY_AUTH_TOKEN="another-token-of-thirty-two-letters-")
    assert end.returncode == 2
    assert "uthenti" in end.stderr


def command(*words, **variables):
    environment = {**os.environ, "PYTHONPATH": PATHS, **variables}
    words = ["run", *words, "--data", "demo/MedQA-Diag", "--engine", "ray"]
    return subprocess.run(
        [sys.executable, "-m", "r2med", *words], env=environment, capture_output=True, text=True, timeout=600
    )


@cache
def engine():
    """Return one engine for all tests, like one Runtime. Its workers stay alive between calls."""
    return open_engine("ray")


def squares(work, count, store, **needs):
    return dict(engine().map(work, range(count), store, WorkNeeds(**needs), {"dtype": "float32"}))


def test_a_node_that_is_killed_during_work_loses_nothing(nodes, store):
    node = nodes.join("four")
    results = engine().map(Squares(seconds=0.2), range(24), store, WorkNeeds())
    seen = dict([next(results)])
    nodes.cluster.remove_node(node, allow_graceful=False)
    assert {**seen, **dict(results)} == {number: number**2 for number in range(24)}


def test_a_node_with_another_version_gives_a_one_line_error(nodes, store, tmp_path):
    shutil.copytree(SOURCE / "r2med", tmp_path / "r2med", ignore=shutil.ignore_patterns("__pycache__"))
    version = tmp_path / "r2med" / "foundation" / "core" / "version.py"
    version.write_text(version.read_text().replace(f'"{r2med.__version__}"', '"0.0.1"'))
    node = nodes.join("old", tmp_path)
    try:
        with pytest.raises(UserError, match=r"is refused: it has r2med 0\.0\.1 instead of"):
            squares(Squares(), 2, store)
    finally:
        nodes.cluster.remove_node(node)


def test_a_cluster_with_another_python_gives_a_one_line_error(nodes):
    key, where = b"CLUSTER_METADATA", {"namespace": b"cluster"}
    state = nodes.cluster.head_node.get_gcs_client()
    kept = state.internal_kv_get(key, **where)
    state.internal_kv_put(key, json.dumps({**json.loads(kept), "python_version": "3.9.1"}).encode(), True, **where)
    try:
        end = command("bm25")
    finally:
        state.internal_kv_put(key, kept, True, **where)
    assert end.returncode == 2
    assert "Version mismatch" in end.stderr
    assert "3.9.1" in end.stderr.splitlines()[-1]


def driver(engine, home):
    """Start a program that encodes a corpus in 17 shards."""
    program = (
        "import sys\nfrom r2med.cli import main\nfrom r2med.models.encoders.encoder import Encoder\n"
        "Encoder.shard_documents = 4\n"
        f"sys.argv = ['r2med', 'run', '{MODEL}', '--data', 'demo/MedQA-Diag', '--engine', '{engine}']\nmain()"
    )
    variables = {"PYTHONPATH": PATHS, "R2MED_HOME": str(home)}
    home.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, **variables, "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "1"},
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def landed(home):
    return len(list(home.glob("vectors/*/meta.json")))


def wait_until(is_so, seconds=600):
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)


def working_driver(engine, home, attempts=5):
    """Start the program and wait until it has worked. Ray's client may give up connecting on a slow machine."""
    for _ in range(attempts):
        started = driver(engine, home)
        wait_until(lambda started=started: landed(home) >= 4 or started.poll() is not None)
        if started.poll() is None:
            break
        with started:
            assert "cannot be used" in started.stderr.read()
    return started


def workers_that_encoded(nodes):
    """Return the process id of the worker for each encoded list of texts."""
    return [line.split()[0] for line in nodes.log.read_text().splitlines()]


def goes_on(nodes, engine, home):
    """Check that a second run encodes only the texts that the first did not."""
    there, earlier = landed(home), {*workers_that_encoded(nodes)}
    assert 4 <= there < 17
    with driver(engine, home) as again:
        assert again.wait(600) == 0, again.stderr.read()
    assert landed(home) == 17
    # Workers of the first run may begin another shard before Ray ends them.
    encoded = [worker for worker in workers_that_encoded(nodes) if worker not in earlier]
    return len(encoded) - 1 <= 17 - there  # one for the queries


def test_a_restarted_driver_does_only_missing_work_beside_another_run(nodes, tmp_path, store):
    squares(Squares(), 2, store)  # the workers of this process stay on all nodes
    home = tmp_path / "home"
    nodes.forget()
    with working_driver("ray", home) as killed:
        killed.kill()
    assert goes_on(nodes, "ray", home)


LOST_CONNECTION = "the connection to the Ray cluster was lost ("


@pytest.mark.parametrize("error", [ConnectionError("gone"), TimeoutError("Ray client\ntimed out"), TimeoutError()])
def test_all_errors_of_a_lost_connection_give_the_same_message(error, store, monkeypatch):
    def fail(self):
        raise error

    monkeypatch.setattr(ray_engine.RayEngine, "_start_missing", fail)
    with pytest.raises(UserError, match=re.escape(LOST_CONNECTION)):
        list(ray_engine.RayEngine("ray").map(Squares(), range(2), store, WorkNeeds()))


def test_offline_a_cluster_with_a_node_on_another_machine_is_refused_before_sending(nodes, store, monkeypatch):
    import ray

    local = ray_engine.RayEngine("ray", local_only=True)
    assert dict(local.map(Squares(), range(2), store, WorkNeeds())) == {0: 0, 1: 1}
    # The nodes were started without the variable, so it must come with the work.
    [(_, reason)] = local.map(refused_look_up, [0], store, WorkNeeds())
    assert reason.startswith("offline: r2med.example is not this machine")
    known = ray.nodes()
    monkeypatch.setattr(ray, "nodes", lambda: [*known, {**known[0], "NodeManagerAddress": "192.0.2.1"}])
    with pytest.raises(UserError, match=r"offline: a node of the Ray cluster, 192\.0\.2\.1, is not this machine"):
        list(local.map(Squares(), range(2), store, WorkNeeds()))


def test_offline_setups_accept_only_clusters_of_this_machine(monkeypatch):
    assert Runtime(offline=True, engine="ray").engine._local_only
    monkeypatch.setenv("R2MED_OFFLINE", "1")
    assert Runtime(engine="ray").engine._local_only
    monkeypatch.setenv("R2MED_OFFLINE", "0")
    assert not Runtime(engine="ray").engine._local_only


def test_a_terminated_run_gives_a_one_line_message(nodes, tmp_path):
    home = tmp_path / "home"
    nodes.forget()
    with driver("ray", home) as stopped:
        wait_until(lambda: landed(home) >= 2)
        stopped.terminate()
        assert stopped.wait(600) == 143
        written = [line for line in stopped.stderr.read().splitlines() if line and not line.startswith("[")]
    assert written == ["r2med: stopped by SIGTERM; the same command goes on from here"]


def test_a_lost_connection_gives_a_one_line_error_and_the_next_run_continues(nodes, tmp_path):
    import psutil

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    @contextlib.contextmanager
    def server():
        words = [
            "--address",
            nodes.cluster.address,
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--mode",
            "specific-server",
        ]
        with (tmp_path / "server.log").open("a") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "ray.util.client.server", *words],
                env={**os.environ, "PYTHONPATH": PATHS},
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        try:
            yield
        finally:
            for process in [*psutil.Process(started.pid).children(recursive=True), started]:
                process.kill()
            started.wait()

    home, engine = tmp_path / "home", f"ray://127.0.0.1:{port}"
    nodes.forget()
    with server():
        lost = working_driver(engine, home)
    with lost:
        assert lost.wait(600) == 2, lost.stderr.read()
        told = lost.stderr.read().splitlines()[-1]
        # A machine that is slow enough is still connecting again when Ray's client gives up.
        assert told.startswith((f"r2med: {LOST_CONNECTION}", f"r2med: the Ray cluster at {engine} cannot be used"))
    assert goes_on(nodes, "ray", home)


def test_a_busy_gpu_is_waited_for_once_and_then_not_used(nodes, store, caplog, monkeypatch):
    import ray

    squares(Squares(), 2, store)  # workers on the other nodes
    node = nodes.join("four", gpus=1)
    other = ray.remote(num_gpus=1)(Squares).remote()
    wait_until(lambda: not ray.available_resources().get("GPU"))
    monkeypatch.setattr(ray_engine, "START_SECONDS", 2)
    try:
        for _ in range(2):
            assert squares(Squares(), 4, store, gpu=True) == {0: 0, 1: 1, 2: 4, 3: 9}
    finally:
        ray.kill(other)
        nodes.cluster.remove_node(node)
    assert caplog.messages.count("GPUs of the Ray cluster are used by others; waiting up to 2 s for them") == 1
    assert sum("no worker started within 2 s" in message for message in caplog.messages) == 1


def test_a_node_whose_disk_is_full_is_left_out(nodes, store, caplog):
    work = Squares(full="two", seconds=0.05)
    assert squares(work, 12, store) == {number: number**2 for number in range(12)}
    assert sum("its disk is full" in message for message in caplog.messages) == 1


def test_a_node_with_another_model_gives_a_one_line_error(nodes, store):
    engine.cache_clear()  # a node with a full disk is not used any more
    with pytest.raises(UserError, match=r"its model differs: it has dtype bfloat16 instead of float32; give all nodes"):
        squares(Squares(differs="two", seconds=0.05), 12, store)


def test_a_dead_worker_is_replaced_but_work_that_kills_three_gives_a_one_line_error(nodes, store, tmp_path):
    once = Squares(dies_at=3, mark=str(tmp_path / "mark"))
    assert squares(once, 8, store) == {number: number**2 for number in range(8)}
    with pytest.raises(UserError, match="3 workers died at the same work, the last on node"):
        squares(Squares(dies_at=3), 8, store)
