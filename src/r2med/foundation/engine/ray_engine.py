"""Map a function over items on a Ray cluster: workers return results, and this process alone writes them.

Ray moves values, starts processes, and starts a worker again that died. An item is tried on three processes of a node:
one that kills three would kill a fourth. The items of a node that is gone are given to the others.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic

from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.ray_connection import check_local, connect
from r2med.foundation.engine.ray_worker import RayWorker, SentArtefact, versions
from r2med.foundation.engine.work import THREADS, Function, Item, Key, Result, WorkNeeds

if TYPE_CHECKING:
    from r2med.foundation.store import Store

log = logging.getLogger("r2med")

MAX_DEATHS = 3
"""Number of processes that may die at one item."""
ITEMS_PER_WORKER = 2
"""Number of items that a worker has: the one that it does, and one that is sent meanwhile."""
START_SECONDS = 120.0
"""Seconds within which a worker must start."""
RUNS_PER_NODE = 4
"""Number of runs that can share the CPUs of a node. A GPU belongs to one run, because two models may not fit."""
DISK_FULL_CODES = (errno.ENOSPC, errno.EDQUOT)
LOST_ERRORS = (ConnectionError, TimeoutError)
"""Errors of Ray's client if its server is gone or too slow. A driver inside the cluster ends with the cluster."""


@dataclass(eq=False)
class Worker:
    """A worker of the cluster, as this process knows it."""

    actor: Any
    node: str
    gpu: bool
    host: str = ""


class RayEngine:
    """The workers of one cluster. They are started for the first items."""

    def __init__(self, name: str, local_only: bool = False) -> None:
        self._name = name
        self._local_only = local_only
        self._workers: list[Worker] = []
        self._left_out: set[str] = set()
        """Nodes that get no more work."""

    def map(
        self,
        function: Function[Item, Result],
        items: Iterable[Item],
        store: Store,
        needs: WorkNeeds,
        key: Key | None = None,
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result as soon as it is ready. Artefacts are then in `store`.

        Raises UserError if a node has another key than `key`. None accepts any.
        """
        if needs.here:
            yield from THREADS.map(function, items, store, needs)
            return
        source = iter(items)
        first = list(islice(source, 1))
        if not first:  # no cluster is needed
            return
        try:
            self._start_missing()
            job = Job(self, function, needs, chain(first, source))
            try:
                for host, item, (there, result) in job.results():
                    _check_same(host, key, there)
                    yield item, _stored(result, store) if isinstance(result, SentArtefact) else result
            finally:
                with contextlib.suppress(*LOST_ERRORS):
                    job.stop()
        except LOST_ERRORS as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UserError(
                f"the connection to the Ray cluster was lost ({reason}); run again to do only the missing work"
            ) from None

    def workers(self, needs: WorkNeeds) -> list[Worker]:
        """Return the workers that a function can run on. Raises UserError if none is left."""
        if not self._workers:
            raise UserError("no node of the Ray cluster can be used; one needs a free CPU and room on its disk")
        with_gpu = [worker for worker in self._workers if worker.gpu]
        return with_gpu if needs.gpu and with_gpu else self._workers

    def leave_out(self, worker: Worker, reason: str) -> None:
        """Give no more work to a node."""
        log.warning("node %s: %s; others continue its work", worker.host, reason)
        self._left_out.add(worker.node)
        for same_node in [other for other in self._workers if other.node == worker.node]:
            self.dismiss(same_node)

    def dismiss(self, worker: Worker) -> None:
        """Stop a worker, whatever it is doing."""
        import ray

        if worker in self._workers:
            self._workers.remove(worker)
            if ray.is_initialized():  # otherwise the connection was lost, and Ray would start a new cluster here
                ray.kill(worker.actor)

    def _start_missing(self) -> None:
        """Start missing workers, one per GPU and one per node without a GPU."""
        if connect(self._name):
            self._workers.clear()
        import ray

        if self._local_only:
            check_local([node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]])
        present = Counter(worker.node for worker in self._workers)
        started = []
        for node in ray.nodes():
            gpus, cpus = int(node["Resources"].get("GPU", 0)), int(node["Resources"].get("CPU", 0))
            if node["Alive"] and cpus and node["NodeID"] not in self._left_out:
                missing = max(1, gpus) - present[node["NodeID"]]
                started += [self._start(node, gpus > 0, max(1, cpus // max(1, gpus))) for _ in range(missing)]
        if sum(worker.gpu for worker in started) > ray.available_resources().get("GPU", 0):
            log.warning("GPUs of the Ray cluster are used by others; waiting up to %d s for them", START_SECONDS)
        self._workers += self._greeted(started)

    def _start(self, node: dict[str, Any], gpu: bool, cores: int) -> Worker:
        """Start a worker with its share of a node's cores."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # A cluster that was started earlier has not inherited the variable. r2med reads it when it is imported there.
        variables = {"R2MED_OFFLINE": "1"} if self._local_only else {}
        actor = ray.remote(RayWorker).options(
            num_cpus=cores // RUNS_PER_NODE or 1 / RUNS_PER_NODE,
            num_gpus=int(gpu),
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            runtime_env={"env_vars": variables} if variables else None,
            max_restarts=-1,
            max_task_retries=MAX_DEATHS - 1,
        )
        return Worker(actor.remote(cores), node["NodeID"], gpu, node["NodeManagerHostname"])

    def _greeted(self, started: list[Worker]) -> list[Worker]:
        """Return the workers that have started. Raises UserError if one has another Python or r2med."""
        import ray

        greetings = [worker.actor.greet.remote() for worker in started]
        ready, _ = ray.wait(greetings, num_returns=len(greetings), timeout=START_SECONDS) if greetings else ([], [])
        for worker, greeting in zip(started, greetings, strict=True):
            if greeting not in ready:
                self._left_out.add(worker.node)  # otherwise each piece of work would wait for it
                ray.kill(worker.actor)
                log.warning(
                    "node %s: no worker started within %d s; others do its work; check that its CPUs and GPUs are free",
                    worker.host,
                    START_SECONDS,
                )
                continue
            try:
                worker.host, there = ray.get(greeting)
            except ray.exceptions.RayError as error:
                if "No module named" not in str(error) and "import" not in str(error):
                    raise
                there = {"r2med": "that cannot be imported"}
            if difference := _difference(versions(), there):
                fix = "install the same r2med and Python on every node"
                raise UserError(f"node {worker.host} is refused: it has {difference}; {fix}")
        return [worker for worker, greeting in zip(started, greetings, strict=True) if greeting in ready]


class Job(Generic[Item, Result]):
    """The items of one call of `map`, and those that workers have."""

    def __init__(
        self, engine: RayEngine, function: Function[Item, Result], needs: WorkNeeds, items: Iterator[Item]
    ) -> None:
        import ray

        self._engine = engine
        self._needs = needs
        self._function = ray.put(function)
        self._items = items
        self._again: deque[Item] = deque()
        """Items of workers that are gone."""
        self._sent: dict[Any, tuple[Worker, Item]] = {}

    def results(self) -> Iterator[tuple[str, Item, Any]]:
        """Yield the node, the item and what the worker returned, as soon as it is there."""
        import ray

        while True:
            self._send()
            if not self._sent:
                return
            [reference], _ = ray.wait(list(self._sent), num_returns=1)
            worker, item = self._sent[reference]
            try:
                returned = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, UserError):
                    raise UserError(f"node {worker.host}: {error.cause}") from None
                if not isinstance(error.cause, OSError) or error.cause.errno not in DISK_FULL_CODES:
                    raise
                self._take_back(worker, f"its disk is full ({error.cause})")
            except ray.exceptions.RayError as error:
                self._check_gone(worker, error)
                self._take_back(worker, "it is gone")
            else:
                del self._sent[reference]
                yield worker.host, item, returned

    def stop(self) -> None:
        """Stop the workers that still have an item, because its result is not needed any more."""
        for worker, _ in self._sent.values():
            self._engine.dismiss(worker)

    def _send(self) -> None:
        """Send one item to each worker, then another one that waits there."""
        workers = self._engine.workers(self._needs)
        load = Counter(id(worker) for worker, _ in self._sent.values())
        for most in range(1, ITEMS_PER_WORKER + 1):
            for worker in [worker for worker in workers if load[id(worker)] < most]:
                next_items = [self._again.popleft()] if self._again else list(islice(self._items, 1))
                for item in next_items:
                    self._sent[worker.actor.do.remote([self._function], item)] = worker, item
                    load[id(worker)] += 1

    def _take_back(self, worker: Worker, reason: str) -> None:
        """Leave out the node of a worker. Others do what it had."""
        for reference, (holder, item) in list(self._sent.items()):
            if holder.node == worker.node:
                del self._sent[reference]
                self._again.append(item)
        self._engine.leave_out(worker, reason)

    def _check_gone(self, worker: Worker, error: Exception) -> None:
        """Raise UserError if a node is still there, because then the item has killed its workers."""
        import ray

        if any(node["NodeID"] == worker.node and node["Alive"] for node in ray.nodes()):
            is_memory = re.search(r"OOM|out ?of ?memory|memory pressure", str(error), re.IGNORECASE)
            raise UserError(
                f"{MAX_DEATHS} workers died at the same work, the last on node {worker.host} "
                f"({'out of memory' if is_memory else 'it was killed'}): "
                "give the nodes more memory, or use less: see memory and tokens_per_batch of Setup"
            )


def _stored(sent: SentArtefact, store: Store) -> Any:
    """Return an artefact of a node, in the store of this process."""
    return store.make(sent.kind, sent.key, sent.write)


def _check_same(host: str, here: Key | None, there: Key) -> None:
    """Raise UserError if a node has another key than this machine."""
    if here is not None and (difference := _difference(here, there)):
        raise UserError(
            f"node {host}: its model differs: it has {difference}; give all nodes the same weights, devices and "
            "packages, or choose dtype (--dtype)"
        )


def _difference(here: Key, there: Key) -> str:
    """Return the first difference of two keys in words, or an empty text if they are equal."""
    for name in sorted({*here, *there}):
        if here.get(name) != there.get(name):
            return f"{name} {there.get(name)} instead of {here.get(name)}"
    return ""
