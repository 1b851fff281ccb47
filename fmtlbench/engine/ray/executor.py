"""Clients in the processes of a Ray cluster. What a lost process held is made again, so numbers do not change.

State stays with the clients; only what a message or a reply carries travels, through Ray's shared memory. A client that
is lost with its process, its machine or a reply is made anew somewhere else, brought to where the last checkpoint has
it, and told again what it was told since: it is then, bit for bit, what it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...base.errors import FmtlbenchError, one_line
from ...config.ray_options import RayOptions
from ...cost.energy import EnergyChoice
from ...cost.processes import ProcessUse
from ...data.views import newcomers, parties
from ...exchange import Party
from ...runs.session import KERNEL_CHOICES
from ..client_models import client_memory
from ..executor import OnStep, Recall
from ..factory import ClientFactory, make_algorithm
from ..messages import ClientFacts, Install, Load, Message, Reply, Train, TrainReport
from ..packing import count_bytes, pack, unpack
from .cluster import cluster_versions, connected
from .worker import Failure, Home, Worker

# What was put into the object store, by address and size: its reference, and the array, so that it stays there.
Shelf = dict[tuple[int, int], tuple[Any, np.ndarray]]
PROCESS_BYTES = 600e6  # Python, torch and a batch


@dataclass
class ClientProcess:
    """A process of the cluster and the clients in it."""

    actor: Any
    members: list[int]
    seen: dict[Path, bool] = field(default_factory=dict)  # folders that were tried: does it read what we write there?
    use: ProcessUse | None = None  # what it told last


OnSend = Callable[[ClientProcess, int, Message], None]
Connect = Callable[[str | None, float | None], contextlib.AbstractContextManager[Any]]


@dataclass
class Past:
    """How a client came to be what it is: from a checkpoint, or from nothing, by messages."""

    messages: list[Message] = field(default_factory=list)
    settled: bool = False  # the executor's `recall` has what came before


@dataclass(frozen=True)
class RemoteLosses:
    """The losses of a training that happened elsewhere: those of its report, for every step."""

    report: TrainReport

    def latest(self) -> dict[str, float]:
        """Return the losses."""
        return self.report.losses


class RayExecutor:
    """Clients spread over processes; those of one process take turns."""

    def __init__(
        self,
        options: RayOptions,
        address: str | None,
        energy: EnergyChoice,
        connect: Connect = connected,
        on_send: OnSend | None = None,
    ) -> None:
        """Hold no clients yet.

        Args:
            options: How the clients are spread.
            address: The running cluster; None starts one for the run.
            energy: Whether and how the processes measure their energy.
            connect: Called with address and size of the object store; gives Ray, connected, for a `with` block.
            on_send: Told (process, client, message) after a message was handed to a process.
        """
        self.options, self.address, self.energy = options, address, energy
        self.connect, self.on_send = connect, on_send
        self.processes: list[ClientProcess] = []
        self.parties: list[Party] = []
        self.facts: dict[int, ClientFacts] = {}
        self.carried = 0  # bytes of arrays that went through the object store
        self.replaced = 0  # processes that were lost and made again
        self._pasts: dict[int, Past] = {}
        self._recall: Recall = lambda index: None
        self._gone: list[ProcessUse] = []  # what lost processes had last told of themselves
        self._open = contextlib.ExitStack()

    # -- making clients ----------------------------------------------------------------------------------------------

    def start(self, factory: ClientFactory, count: int) -> list[ClientFacts]:
        """Connect, spread the clients over as many processes as find a place, and make them."""
        self.ray = self._open.enter_context(self.connect(self.address, self.options.object_store_gb))
        self.factory = dataclasses.replace(factory, device="cuda" if factory.config.device == "cuda" else "cpu")
        data = factory.opened()
        self.parties = [*parties(factory.config, data), *newcomers(factory.config, data)]
        node = self.ray.get_runtime_context().get_node_id()
        self.home = Home(os.getpid(), node, torch.get_num_threads(), cluster_versions(), self.energy)
        self._pasts = {index: Past() for index in range(count)}
        tracks = len(make_algorithm(factory.config, parties(factory.config, data)).tracks)
        self.needs = [client_memory(factory.config, party, tracks) for party in self.parties]
        groups = share_out([self._effort(party) for party in self.parties], self._room(count))
        self.processes = [self._new_process(group) for group in groups]
        for process in list(self.processes):
            try:
                self._settle_in(process)
            except _Lost as error:
                self.replace(process, str(error))
        return [self.facts[index] for index in range(count)]

    def _effort(self, party: Party) -> float:
        """Reckon how long a client's round takes beside another's: images, and a pass for each task and the encoder."""
        return party.samples * self.factory.config.train.local_epochs[party.dataset] * (1 + len(party.tasks))

    def _room(self, count: int) -> int:
        """Return how many processes there shall be: as many as were asked for, or as the cluster has room for."""
        there = self.ray.cluster_resources()
        fits = there.get("CPU", 0) / self.options.cpus_per_client
        wanted = f"{self.options.cpus_per_client:g} CPUs"
        if self.factory.device == "cuda":
            fits = min(fits, there.get("GPU", 0) / self.options.gpus_per_client)
            wanted += f" and {self.options.gpus_per_client:g} GPUs"
        count = min(count, self.options.workers or max(1, int(fits)))
        if count > fits + 1e-9:
            has = f"{there.get('CPU', 0):g} CPUs and {there.get('GPU', 0):g} GPUs"
            raise FmtlbenchError(
                f"--executor ray: {count} processes with {wanted} each, and the cluster has {has}; --set "
                "ray.workers=…, ray.cpus_per_client=… and ray.gpus_per_client=… ask for less"
            )
        return count

    def _new_process(self, members: list[int]) -> ClientProcess:
        """Ask for a process; it need not be there yet."""
        options: dict[str, Any] = {
            "num_cpus": self.options.cpus_per_client,
            "num_gpus": self.options.gpus_per_client if self.factory.device == "cuda" else 0,
            "memory": self._memory(members),
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        # A cluster that was there before has an environment of its own.
        if chosen := {name: os.environ[name] for name in KERNEL_CHOICES if name in os.environ}:
            options["runtime_env"] = {"env_vars": chosen}
        actor = self.ray.remote(_Actor).options(**options).remote(self.factory, self.home)
        return ClientProcess(actor, list(members))

    def _memory(self, members: list[int]) -> int:
        """Return the memory that Ray shall find for a process: parked clients do not add up."""
        if self.options.memory_gb is not None:
            return int(self.options.memory_gb * 1e9)
        needs = [self.needs[index] for index in members] or [0]
        parked = self.factory.config.federation.park != "none"
        return int(PROCESS_BYTES + (max(needs) if parked else sum(needs)))

    def _settle_in(self, process: ClientProcess) -> None:
        """Wait for a process and bring its clients to where they were.

        Raises:
            _Lost: It found no place in time, or was lost again.
        """
        self._wait_for(process)
        self._check(self._get(process.actor.open.remote()))
        for index in list(process.members):
            self._bring(process, index)

    def _wait_for(self, process: ClientProcess) -> None:
        ready = process.actor.ready.remote()
        done, _ = self.ray.wait([ready], timeout=self.options.patience)
        if not done:
            raise _Lost(f"no machine of the cluster has room for a process ({self._wanted(process)})")
        self._get(ready)

    def _wanted(self, process: ClientProcess) -> str:
        gpus = f", {self.options.gpus_per_client:g} GPUs" if self.factory.device == "cuda" else ""
        return f"{self.options.cpus_per_client:g} CPUs{gpus}, {self._memory(process.members) / 1e9:.1f} GB of memory"

    def _bring(self, process: ClientProcess, index: int) -> None:
        """Make a client and lead it to where it was."""
        self.facts[index] = self._check(self._get(process.actor.make.remote(index)))
        past = self._pasts[index]
        recalled = self._recall(index) if past.settled else None
        for message in (*([] if recalled is None else [recalled]), *past.messages):
            self._check(self._get(self._send(process, index, message)))

    # -- messages ----------------------------------------------------------------------------------------------------

    def map(self, messages: Mapping[int, Message], on_step: OnStep | None = None) -> Iterator[tuple[int, Reply]]:
        """Send all messages at once; yield replies in order, whatever becomes of a process meanwhile."""
        waiting = _Waiting(self, messages)
        for index, message in messages.items():
            reply, wall = waiting.reply(index)
            past = self._pasts[index]
            if isinstance(message, Load) and (past.messages or not past.settled):
                self._pasts[index] = Past([message])
            elif isinstance(message, (Train, Install)):
                past.messages.append(message)
            if on_step is not None and reply.report is not None:
                for _ in range(self.facts[index].steps_per_round):
                    on_step(self.parties[index], RemoteLosses(reply.report))
            yield index, dataclasses.replace(reply, wall=wall)

    def whereabouts(self, process: ClientProcess) -> tuple[str, int]:
        """Return the machine and the number of a process; it answers after what it is at."""
        node, number = self._get(process.actor.whereabouts.remote())
        return node, number

    def process_of(self, index: int) -> ClientProcess:
        """Return where a client lives."""
        return next(process for process in self.processes if index in process.members)

    def _send(self, process: ClientProcess, index: int, message: Message, shelf: Shelf | None = None) -> Any:
        """Hand a message to a process; what lies on the `shelf` already is not put there again."""
        shelf = {} if shelf is None else shelf

        def put(content: np.ndarray) -> Any:
            key = content.ctypes.data, content.nbytes
            if key not in shelf:
                shelf[key] = self.ray.put(content), content  # kept, so that nothing else comes to lie at its address
                self.carried += content.nbytes
            return shelf[key][0]

        try:
            reference = process.actor.answer.remote(index, pack(message, put))
        except self.ray.exceptions.ObjectStoreFullError as error:
            raise self._store_is_full(error) from None
        if self.on_send is not None:
            self.on_send(process, index, message)
        return reference

    def _get(self, reference: Any) -> Any:
        """Take an answer.

        Raises:
            _Lost: Process, machine or answer are gone.
        """
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except (errors.ObjectStoreFullError, errors.OutOfDiskError) as error:
            raise self._store_is_full(error) from None
        except errors.RayTaskError as error:  # only what no guard in the process could catch
            if isinstance(error.cause, (errors.ObjectStoreFullError, errors.OutOfDiskError)):
                raise self._store_is_full(error.cause) from None
            raise FmtlbenchError(f"in a process with clients: {one_line(error.cause)[:300]}") from None
        except errors.RayError as error:
            raise _Lost(one_line(error)[:300]) from None

    def _store_is_full(self, error: Exception) -> FmtlbenchError:
        return FmtlbenchError(
            f"Ray's object store has no room for what clients send ({one_line(error)[:120]}); give it more (--set "
            "ray.object_store_gb=…, or `ray start --object-store-memory`)"
        )

    def _check(self, answer: Any) -> Any:
        if isinstance(answer, Failure):
            raise answer.error()
        return answer

    # -- what is lost ------------------------------------------------------------------------------------------------

    def replace(self, process: ClientProcess, why: str) -> None:
        """Have the clients of a lost process live somewhere else, as they were; nobody goes on without them."""
        for _ in range(self.options.retries):
            self._let_go(process)
            self.replaced += 1
            process.actor = self._new_process(process.members).actor
            try:
                moved = process.members
                try:
                    self._wait_for(process)
                except _Lost:
                    process = self._join_others(process)
                    for index in moved:
                        self._bring(process, index)
                    return
                self._settle_in(process)
                return
            except _Lost as error:
                why = str(error)
        lost = ", ".join(self.parties[index].id for index in process.members)
        raise FmtlbenchError(
            f"clients {lost} could not be brought back ({self.options.retries} times tried): {why}; fewer processes at "
            "once (--set ray.workers=…) or parked clients (--set federation.park=disk) need less memory; the same "
            "command goes on after the last checkpoint"
        )

    def _let_go(self, process: ClientProcess) -> None:
        with contextlib.suppress(Exception):
            self.ray.kill(process.actor, no_restart=True)
        if process.use is not None:
            self._gone.append(process.use)
        process.use, process.seen = None, {}

    def _join_others(self, process: ClientProcess) -> ClientProcess:
        """Put the clients of a process to those of the one that has fewest, where the cluster has shrunk."""
        others = [other for other in self.processes if other is not process]
        if not others:
            raise _Lost(f"no machine of the cluster has room for a process ({self._wanted(process)})")
        self._let_go(process)
        host = min(others, key=lambda other: len(other.members))
        host.members = [*host.members, *process.members]
        self.processes.remove(process)
        return host

    def settle(self, recall: Recall) -> None:
        """Forget how clients came to be what `recall` knows."""
        self._recall = recall
        for index in range(len(self.factory.config.scenario.parties())):  # unseen clients are in no checkpoint
            self._pasts[index] = Past(settled=True)

    # -- about them --------------------------------------------------------------------------------------------------

    def sees(self, folder: Path) -> bool:
        """Ask every process, once for its checkpoints, whether it reads what is written beside a folder."""
        parent = folder.resolve().parent
        # Only who is new is asked: the others may be training, and would answer after that.
        if asked := [process for process in self.processes if parent not in process.seen]:
            token, file = secrets.token_hex(8), parent / f".seen-{os.getpid()}"
            file.write_text(token, encoding="utf-8")
            try:
                for process in asked:
                    process.seen[parent] = self._get(process.actor.read_token.remote(str(file))) == token
            except _Lost:  # who replaces it is asked again
                return False
            finally:
                file.unlink(missing_ok=True)
        return all(process.seen[parent] for process in self.processes)

    def use(self) -> list[ProcessUse]:
        """Ask every process what it has used; of lost ones, what they told last."""
        for process in self.processes:
            with contextlib.suppress(_Lost):  # its clients are brought back when they are needed next
                process.use = self._get(process.actor.use.remote())
        return [*self._gone, *(process.use for process in self.processes if process.use is not None)]

    def describe(self) -> dict[str, Any]:
        """Say how many processes there are on how many machines."""
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        return {
            "name": "ray",
            "ray": self.ray.__version__,
            "processes": len(self.processes),
            "machines": len(nodes),
            "clients": [[self.parties[index].id for index in process.members] for process in self.processes],
        }

    def stop(self) -> None:
        """Let the clients go, and the cluster if it was started for them."""
        for process in self.processes:
            with contextlib.suppress(Exception):
                self.ray.kill(process.actor, no_restart=True)
        self.processes = []
        self._open.close()


class _Lost(Exception):
    """A process, its machine or its answer is gone."""


class _Waiting:
    """Messages that are on their way, and when their replies came."""

    def __init__(self, executor: RayExecutor, messages: Mapping[int, Message]) -> None:
        self.executor, self.left = executor, dict(messages)
        self.shelf: Shelf = {}  # what was put into the object store for these messages
        self.began = time.perf_counter()
        self.arrived: dict[Any, float] = {}
        self.references: dict[int, Any] = {}
        for index in self.left:
            self._send(index)

    def _send(self, index: int) -> None:
        message = self.left[index]
        self.references[index] = self.executor._send(self.executor.process_of(index), index, message, self.shelf)

    def reply(self, index: int) -> tuple[Reply, float]:
        """Return the reply of the client whose turn it is, and how long it took to come."""
        executor = self.executor
        for attempt in range(executor.options.retries + 1):
            try:
                packed = executor._check(executor._get(self._first(index)))
                break
            except _Lost as error:
                if attempt == executor.options.retries:
                    raise FmtlbenchError(
                        f"client {executor.parties[index].id} was lost {attempt + 1} times: {error}"
                    ) from None
                process = executor.process_of(index)
                again = [i for i in process.members if i in self.left]
                executor.replace(process, str(error))
                for i in again:
                    self._send(i)
        wall = self.arrived[self.references[index]] - self.began
        del self.left[index]
        executor.carried += count_bytes(packed)
        return unpack(packed), wall

    def _first(self, index: int) -> Any:
        """Wait until a client's reply is there; note when those of others come meanwhile."""
        mine = self.references[index]
        while mine not in self.arrived:
            open_ones = [self.references[i] for i in self.left if self.references[i] not in self.arrived]
            done, _ = self.executor.ray.wait(open_ones, num_returns=1, fetch_local=False)
            now = time.perf_counter()
            self.arrived |= {reference: now for reference in done}
        return mine


class _Actor(Worker):
    """A worker in Ray: its node is Ray's, and what lies in the object store is fetched without a copy."""

    def __init__(self, factory: ClientFactory, home: Home) -> None:
        import ray

        super().__init__(factory, home, ray.get_runtime_context().get_node_id(), ray.get)

    def ready(self) -> bool:
        """Answer as soon as the process is there."""
        return True


def share_out(efforts: list[float], groups: int) -> list[list[int]]:
    """Deal numbers to groups so that the largest sum is small: the largest first, each to the emptiest group."""
    dealt: list[list[int]] = [[] for _ in range(groups)]
    sums = [0.0] * groups
    for index in sorted(range(len(efforts)), key=lambda i: -efforts[i]):
        group = min(range(groups), key=sums.__getitem__)
        dealt[group].append(index)
        sums[group] += efforts[index]
    return [sorted(members) for members in dealt if members]
