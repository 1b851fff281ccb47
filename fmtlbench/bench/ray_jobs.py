"""Whole runs on the machines of a Ray cluster: each a process like any other, held by an actor that ends with us.

The one loop (workers.py) and the reservations stay here; what it sees of a run far away is what the actor tells.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError, one_line
from ..engine.ray.cluster import check_versions, cluster_versions, connected, read_token
from ..runs.session import KERNEL_CHOICES
from .local_jobs import Job, LocalJob
from .plan import PlannedRun

LOOK = 0.5  # seconds between two questions to an actor
PATIENCE = 60.0  # seconds in which every machine must say what it sees
SEEN_LATE = 60.0  # seconds for which network file systems remember that a file was not there
KILLING = 3.0  # seconds that an actor has to kill its process, before it is ended itself
# What the user's environment says of runs; the rest is the business of each machine.
PASSED = (*KERNEL_CHOICES, "OMP_NUM_THREADS", "HF_HUB_OFFLINE", "WANDB_MODE", "WANDB_PROJECT")
PASSED_PREFIX = "FMTLBENCH_"


@dataclass(frozen=True)
class Shared:
    """What a machine must have in common with this one: the folder of the runs, and all that can move a number."""

    file: str
    token: str
    versions: dict[str, str]

    def check(self) -> None:
        """Check that it is so, on the machine where this is called.

        Raises:
            FmtlbenchError: It is not.
        """
        if read_token(self.file) != self.token:
            raise FmtlbenchError(
                f"--out {Path(self.file).parents[1]}: a machine of the cluster does not see there what this one "
                "writes; with --hosts ray it must be one folder that all machines share"
            )
        check_versions(self.versions)


@dataclass(frozen=True)
class News:
    """What an actor tells of its process."""

    code: int | None
    round: int
    rounds: int | None
    eta: float | None
    last_words: str


@contextmanager
def ray_jobs(address: str | None, out: Path, cpus: float = 1.0, gpus: float = 0.0) -> Iterator[RayJobs]:
    """Connect to a cluster (None: of this machine) and see that runs can be done there.

    Args:
        address: Of a running cluster, host:port or "auto".
        out: The folder of the runs.
        cpus: That a run needs.
        gpus: Likewise; a fraction where several share one.

    Raises:
        FmtlbenchError: Nobody answers, no machine has room for a run, or one does not share the folder.
    """
    # Ray tells of lost processes on the standard output, whatever it was asked to: that is the result's place.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), connected(address) as ray:
        nodes = _fitting_nodes(ray, cpus, gpus)
        folder = out.absolute() / ".bench"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"shared-{secrets.token_hex(4)}"
        shared = Shared(str(file), secrets.token_hex(8), cluster_versions())
        file.write_text(shared.token, encoding="utf-8")
        try:
            _check_nodes(ray, nodes, shared)
            yield RayJobs(ray, shared, cpus, gpus)
        finally:
            file.unlink(missing_ok=True)


def _fitting_nodes(ray: Any, cpus: float, gpus: float) -> list[str]:
    """Return the machines that a run could be on."""
    rooms = {n["NodeID"]: [n["Resources"].get(what, 0) for what in ("CPU", "GPU")] for n in ray.nodes() if n["Alive"]}
    fitting = [node for node, room in rooms.items() if room[0] >= cpus and room[1] >= gpus]
    if not fitting:
        there = ", ".join(f"{room[0]:g} and {room[1]:g}" for room in rooms.values())
        raise FmtlbenchError(
            f"--hosts ray: a run needs {cpus:g} CPUs and {gpus:g} GPUs, and the cluster's machines have {there}; "
            "--cpus-per-job and --gpus-per-job ask for less, --device cpu for no GPU"
        )
    return fitting


def _check_nodes(ray: Any, nodes: list[str], shared: Shared) -> None:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    check = ray.remote(_check)
    asked = [
        check.options(num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
        for node in nodes
    ]
    try:
        answers = ray.get([task.remote(shared) for task in asked], timeout=PATIENCE)
    except ray.exceptions.RayError as error:
        raise FmtlbenchError(f"--hosts ray: a machine of the cluster does not answer: {_reason(error)}") from None
    for answer in filter(None, answers):
        raise FmtlbenchError(answer)


def _check(shared: Shared) -> str | None:
    """Run on a machine of the cluster: what is wrong with it."""
    try:
        shared.check()
    except FmtlbenchError as error:
        return str(error)
    return None


class RayJobs:
    """Starts runs on the cluster; Ray queues what does not fit."""

    def __init__(self, ray: Any, shared: Shared, cpus: float = 1.0, gpus: float = 0.0) -> None:
        self.ray, self.shared = ray, shared
        # A lost process is the loop's to start again, which counts how often.
        self.options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        self.threads = str(max(1, int(cpus)))

    def start(self, run: PlannedRun, command: list[str], log: Path, lock: int) -> RayJob:
        """Ask for a place for a run. The reservation's `lock` stays here."""
        actor = self.ray.remote(Keeper).options(**self.options).remote(self.shared)
        begun = actor.start.remote(command[1:], str(log.absolute()), self._environment(run))
        return RayJob(self.ray, actor, begun, log, run.finished)

    def _environment(self, run: PlannedRun) -> dict[str, str]:
        """Return what a run's process has beside the environment of its machine."""
        passed = {k: value for k, value in os.environ.items() if k in PASSED or k.startswith(PASSED_PREFIX)}
        if run.config.train.threads is None:
            passed.setdefault("OMP_NUM_THREADS", self.threads)
        return passed


class Keeper:
    """The actor: one process on its machine. If the actor is killed, Linux interrupts the process (local_jobs.py)."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    def start(self, words: list[str], log: str, environment: dict[str, str]) -> News:
        """Start the run with this machine's own Python, which Ray has seen to be of the same version."""
        self.shared.check()  # this machine may have joined later
        self.child = LocalJob([sys.executable, *words], Path(log), {**os.environ, **environment})
        return self.news()

    def news(self) -> News:
        """Tell how it goes."""
        child, code = self.child, self.child.poll()
        return News(code, child.round, child.rounds, child.eta, child.last_words)

    def interrupt(self) -> None:
        """Ask it to stop."""
        self.child.interrupt()

    def kill(self) -> None:
        """End it at once."""
        self.child.kill()

    def whereabouts(self) -> tuple[int, int]:
        """Return the numbers of this process and of the run's."""
        return os.getpid(), self.child.process.pid


class RayJob(Job):
    """A run that an actor holds, as the loop follows it: never waits for an answer."""

    waiting = True

    def __init__(self, ray: Any, actor: Any, begun: Any, log: Path, finished: Callable[[], bool]) -> None:
        super().__init__(log)
        self.ray, self.actor, self.finished = ray, actor, finished
        self._asked, self._ask_again = begun, 0.0
        self._code: int | None = None
        self._ended: float | None = None  # when we heard of its good end
        self._lost_how = ""

    def poll(self) -> int | None:
        if self._code is not None:
            return self._code
        now = time.monotonic()
        if self._ended is not None:  # its result is written: this machine may see it later than that one
            if self.finished() or now - self._ended > SEEN_LATE:
                self._end(0)
        elif self._asked is None and now >= self._ask_again:
            self._asked = self.actor.news.remote()
        elif self._asked is not None and self.ray.wait([self._asked], timeout=0)[0]:
            self._hear(self._asked)
        return self._code

    def _hear(self, answer: Any) -> None:
        errors = self.ray.exceptions
        try:
            news = self.ray.get(answer)
        except errors.RayError as error:
            self.lost, self._lost_how = True, _reason(error)
            self._end(1)
            return
        self.waiting, self._asked, self._ask_again = False, None, time.monotonic() + LOOK
        self.round, self.rounds, self.eta, self.last_words = news.round, news.rounds, news.eta, news.last_words
        if news.code == 0:
            self._ended = time.monotonic()
        elif news.code is not None:
            self._end(news.code)

    def interrupt(self) -> None:
        if self.interrupted or self._code is not None:
            return
        self.interrupted = True
        if self.waiting:  # nothing is there to be kept
            self._end(-signal.SIGINT)
        else:
            self.actor.interrupt.remote()

    def kill(self) -> None:
        self.interrupted = True
        if self._code is not None:
            return
        if not self.waiting:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.get(self.actor.kill.remote(), timeout=KILLING)
        self._end(-signal.SIGKILL)

    def ending(self, code: int) -> str:
        return f"lost on the cluster: {self._lost_how}" if self.lost else super().ending(code)

    def _end(self, code: int) -> None:
        """Give the place back."""
        self._code = code
        with contextlib.suppress(Exception):
            self.ray.kill(self.actor, no_restart=True)


def _reason(error: Exception) -> str:
    """Return what Ray says of a loss, without its indented lines of addresses and numbers."""
    lines = str(getattr(error, "cause", None) or error).splitlines()
    return one_line(" ".join(line for line in lines if not line.startswith("\t")))[:300]
