"""Run work on a Ray cluster: send items to workers that hold models, and bring results back to this machine.

Ray moves values and starts processes. This module assigns items to workers and handles lost workers. If a worker dies,
its item is given to another one, but only three times: an item that kills three workers would kill a fourth.
"""

from __future__ import annotations

import contextlib
import logging
import re
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.ray_connection import check_local, connect
from r2med.foundation.engine.work import THREADS, Agreed, Item, Result, Work, WorkNeeds

if TYPE_CHECKING:
    from r2med.foundation.engine.ray_worker import SentArtefact
    from r2med.foundation.store import Artefact, Store

log = logging.getLogger("r2med")

MAX_DEATHS = 3
"""Number of workers that may die at one item, or on one node before the node is not used any more."""

START_SECONDS = 120.0
"""Seconds within which a worker must start."""

RUNS_PER_NODE = 4
"""Number of runs that can share the CPUs of a node. A GPU belongs to one run, because two models may not fit."""


LOST_ERRORS = (ConnectionError, TimeoutError)
"""Errors of Ray's client if its server is gone or too slow. A driver inside the cluster ends with the cluster."""


def _lost(error: Exception) -> UserError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return UserError(f"the connection to the Ray cluster was lost ({reason}); run again to do only the missing work")


@dataclass(eq=False)
class Member:
    """A worker of the cluster, as this process knows it."""

    actor: Any
    node: str
    gpu: bool
    host: str = ""


@dataclass(eq=False)
class Task(Generic[Item]):
    """An item of work, and the number of workers that died at it."""

    item: Item
    deaths: int = 0


class RayEngine:
    """The workers of one cluster. They are started for the first work."""

    def __init__(self, name: str, local_only: bool = False) -> None:
        self._name = name
        self._local_only = local_only
        self._members: list[Member] = []
        self._deaths: Counter[str] = Counter()
        self._left_out: set[str] = set()
        """Nodes that get no more work."""
        self._answers: dict[Any, Any] = {}

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], store: Store, needs: WorkNeeds
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result as soon as it is ready. Artefacts are then in `store`."""
        if needs.here:
            yield from THREADS.map(work, items, store, needs)
            return
        source = map(Task, items)
        first = next(source, None)
        if first is None:  # nothing to do: no cluster is needed for it
            return
        try:
            self._staff()
        except LOST_ERRORS as error:
            raise _lost(error) from None
        note = f"engine-{uuid.uuid4().hex}"
        store.remember(note, {"engine": self._name})
        flight: Flight[Item, Result] = Flight(self, work, store, needs, note)
        try:
            yield from flight.results(first, source)
        except LOST_ERRORS as error:
            raise _lost(error) from None
        finally:
            with contextlib.suppress(*LOST_ERRORS):
                flight.stop()
            store.forget(note)

    def agreed(self, question: Callable[[], Agreed], needs: WorkNeeds) -> Agreed:
        """Return the common answer of all workers that could do such work. The question is asked once."""

        key = repr(question)
        if key not in self._answers:
            self._staff()
            members = self.members(needs)
            answers = [self.got(member, member.actor.answer.remote(question)) for member in members]
            for member, answer in zip(members, answers, strict=True):
                if answer != answers[0]:
                    raise UserError(
                        f"nodes differ: {answers[0]} on {members[0].host}, {answer} on {member.host}; choose dtype "
                        "(--dtype)",
                    )
            self._answers[key] = answers[0]
        agreed: Agreed = self._answers[key]
        return agreed

    def members(self, needs: WorkNeeds) -> list[Member]:
        """Return the workers that can do such work. Raises UserError if none is left."""
        if not self._members:
            raise UserError("no node of the Ray cluster can be used; one needs a free CPU and room on its disk")
        with_gpu = [member for member in self._members if member.gpu]
        return with_gpu if needs.gpu and with_gpu else list(self._members)

    def got(self, member: Member, reference: Any) -> Any:
        """Return the result of a call. Raises UserError with the name of the node if the call raised one."""
        import ray

        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise UserError(f"node {member.host}: {error.cause}") from None
            raise

    def lose(self, member: Member, error: Exception) -> None:
        """Record that a worker died, and start other workers on the remaining nodes."""
        log.warning("node %s: a worker died (%s); others continue its work", member.host, _reason(error))
        self.dismiss(member)
        self._count_death(member)
        self._staff()

    def _count_death(self, member: Member) -> None:
        self._deaths[member.node] += 1
        if self._deaths[member.node] >= MAX_DEATHS:
            self._left_out.add(member.node)

    def leave_out(self, member: Member, reason: str) -> None:
        """Give no more work to a node."""
        log.warning("node %s: %s; others continue its work", member.host, reason)
        self._left_out.add(member.node)
        for each in [each for each in self._members if each.node == member.node]:
            self.dismiss(each)

    def dismiss(self, member: Member) -> None:
        """Stop a worker, whatever it is doing."""
        import ray

        if member in self._members:
            self._members.remove(member)
            if ray.is_initialized():  # otherwise the connection was lost, and Ray would start a new cluster here
                ray.kill(member.actor)

    def _staff(self) -> None:
        """Start missing workers, one per GPU and one per node without a GPU. Refuse nodes with other versions."""
        if connect(self._name):
            self._members.clear()
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from r2med.foundation.engine.ray_worker import RayWorker

        if self._local_only:
            check_local([node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]])
        # A cluster that was started earlier has not inherited the variable. r2med reads it when it is imported there.
        guarded = {"runtime_env": {"env_vars": {"R2MED_OFFLINE": "1"}}} if self._local_only else {}
        present = Counter(member.node for member in self._members)
        started = []
        for node in ray.nodes():
            name, resources = node["NodeID"], node["Resources"]
            gpus, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 0))
            if not node["Alive"] or not cpus or name in self._left_out:
                continue
            share = max(1, cpus // max(1, gpus))
            for _ in range(max(1, gpus) - present[name]):
                actor = ray.remote(RayWorker).options(
                    num_cpus=share // RUNS_PER_NODE or 1 / RUNS_PER_NODE,
                    num_gpus=1 if gpus else 0,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False),
                    **guarded,
                )
                started.append(Member(actor.remote(share), name, gpus > 0, node["NodeManagerHostname"]))
        if sum(member.gpu for member in started) > ray.available_resources().get("GPU", 0):
            log.warning("GPUs of the Ray cluster are used by others; waiting up to %d s for them", START_SECONDS)
        self._members += self._greeted(started)

    def _greeted(self, started: list[Member]) -> list[Member]:
        """Return the workers that have started. Raises UserError if one has another Python or r2med."""
        import ray

        from r2med.foundation.engine.ray_worker import Installation

        greetings = [member.actor.greet.remote() for member in started]
        ready, _ = ray.wait(greetings, num_returns=len(greetings), timeout=START_SECONDS) if greetings else ([], [])
        here = Installation.here()
        greeted = []
        for member, greeting in zip(started, greetings, strict=True):
            if greeting not in ready:
                log.warning(
                    "node %s: no worker started within %d s; others do its work; check that its CPUs and GPUs are free",
                    member.host,
                    START_SECONDS,
                )
                ray.kill(member.actor)
                self._left_out.add(member.node)  # otherwise each piece of work would wait for it
                continue
            try:
                member.host, there = ray.get(greeting)
            except ray.exceptions.RayError as error:
                if "No module named" in str(error) or "import" in str(error):
                    raise _refused(member.host, f"r2med {here.r2med} cannot be imported there") from None
                log.warning("node %s: a worker died (%s)", member.host, _reason(error))
                self._count_death(member)
                continue
            if difference := here.difference(there):
                raise _refused(member.host, f"it has {difference}")
            greeted.append(member)
        return greeted


class Flight(Generic[Item, Result]):
    """The items of one piece of work that have been sent to workers."""

    def __init__(self, engine: RayEngine, work: Work[Item, Result], store: Store, needs: WorkNeeds, note: str) -> None:
        import ray

        self._engine = engine
        self._store = store
        self._needs = needs
        self._note = note
        self._work = ray.put(work)
        self._again: deque[Task[Item]] = deque()
        self._flying: dict[Any, tuple[Member, Task[Item]]] = {}

    def results(self, first: Task[Item], source: Iterator[Task[Item]]) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result as soon as it is ready."""
        import ray

        self._again.append(first)
        while True:
            self._send(source)
            if not self._flying:
                return
            [reference], _ = ray.wait(list(self._flying), num_returns=1)
            member, task = self._flying[reference]
            try:
                landed = self._landed(self._engine.got(member, reference), member)
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError as error:
                self._lost(member, error)
                continue
            self._flying.pop(reference, None)  # unless its node was left out
            if landed is not None:
                yield task.item, landed

    def stop(self) -> None:
        """Stop the workers that still work on an item, because its result is not needed any more."""
        for member, _ in self._flying.values():
            self._engine.dismiss(member)

    def _send(self, source: Iterator[Task[Item]]) -> None:
        """Send one item to each worker, then further items that wait there."""
        members = self._engine.members(self._needs)
        load = Counter(id(member) for member, _ in self._flying.values())
        for depth in range(1 + self._needs.ahead):
            for member in members:
                if load[id(member)] > depth:
                    continue
                task = self._again.popleft() if self._again else next(source, None)
                if task is None:
                    return
                view = self._store.view
                call = member.actor.do.remote([self._work], task.item, self._note, view, self._store.labels.datasets)
                self._flying[call] = (member, task)
                load[id(member)] += 1

    def _lost(self, member: Member, error: Exception) -> None:
        """Take back the items of a dead worker. Raises UserError if it is the third worker that died at its item."""
        references = [reference for reference, (each, _) in self._flying.items() if each is member]
        tasks = [self._flying.pop(reference)[1] for reference in references]
        tasks[0].deaths += 1  # the others were waiting
        self._again.extend(tasks)
        if tasks[0].deaths >= MAX_DEATHS:
            raise UserError(
                f"{MAX_DEATHS} workers died at the same work, the last on node {member.host} ({_reason(error)}): "
                "give the nodes more memory, or use less: see memory and tokens_per_batch of Setup"
            )
        self._engine.lose(member, error)

    def _landed(self, result: Any, member: Member) -> Any:
        """Return a result, with artefacts in the caller's store; None if a full disk means that others must do it."""
        from r2med.foundation.engine.ray_worker import DiskFull, SentArtefact

        if isinstance(result, DiskFull):
            for reference in [ref for ref, (each, _) in self._flying.items() if each.node == member.node]:
                self._again.append(self._flying.pop(reference)[1])
            self._engine.leave_out(member, f"its disk is full ({result.reason})")
            return None
        return self._stored(result, member) if isinstance(result, SentArtefact) else result

    def _stored(self, sent: SentArtefact, member: Member) -> Artefact:
        def write(folder: Path) -> dict[str, Any]:
            files = sent.files
            if files is None:  # both use one store, but our view of it is older
                files = self._engine.got(member, member.actor.files.remote(sent.kind, sent.key))
            for name, content in files.items():
                content.tofile(folder / name)
            return dict(sent.meta)

        return self._store.make(sent.kind, sent.key, write)


def _refused(host: str, reason: str) -> UserError:
    return UserError(f"node {host} is refused: {reason}; install the same r2med and Python on every node")


def _reason(error: Exception) -> str:
    text = str(error)
    if re.search(r"OOM|[Oo]ut ?[Oo]f ?[Mm]emory|memory pressure", text):
        return "out of memory"
    if re.search(r"node (has |was )?(died|dead|terminated|removed|lost)|NodeDied|node.* dead", text, re.IGNORECASE):
        return "its node is gone"
    return "it was killed"
