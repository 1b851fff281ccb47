"""Runs as processes of this machine: how each is started, followed through its log, and stopped."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .plan import PlannedRun

WRONG_USAGE = 2  # exit code: trying again would not help
_SET_PARENT_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG
# Looked up here and not after a fork, where another thread of this process might have held the linker's lock.
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def run_command(run: PlannedRun) -> list[str]:
    """Return the command line that does `run`, which a person could type as well, in any folder."""
    return [sys.executable, "-m", "fmtlbench", "run", *run.request.anywhere().to_argv(), "--format", "json"]


class Job:
    """What the loop sees of a run's process, wherever that is."""

    waiting = False  # for a place to run in
    lost = False  # with what it ran in; nobody knows how it ended

    def __init__(self, log: Path) -> None:
        self.log, self.round, self.rounds, self.eta = log, 0, None, None
        self.last_words = ""  # what it said last that is no progress: its error
        self.interrupted = False

    def poll(self) -> int | None:
        """Return its exit code if it has ended; take in what it has told since the last time."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Ask it, once, to stop: the last complete round stays."""
        raise NotImplementedError

    def kill(self) -> None:
        """End it at once."""
        raise NotImplementedError

    def ending(self, code: int) -> str:
        """Say why the run ended, in one line."""
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            hint = " (out of memory?)" if name == "SIGKILL" else ""
            return f"killed by {name}{hint}" + (f"; last words: {self.last_words}" if self.last_words else "")
        return self.last_words or f"exit code {code}, without a word"


class LocalJob(Job):
    """A started process. Its stderr goes straight to the log, which is read as it grows.

    `lock` is a file that it inherits and keeps open, so that a lock on it lasts as long as the process.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str], lock: int | None = None) -> None:
        super().__init__(log)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            stream.write(f"$ {shlex.join(command)}\n".encode())
            stream.flush()
            self._read_to, self._rest = stream.tell(), b""
            # In a session of its own: Ctrl-C on the terminal reaches the bench only, which passes it on once.
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stream,
                env=environment,
                start_new_session=True,
                preexec_fn=_prepare(os.getpid()) if os.name == "posix" else None,
                pass_fds=(lock,) if os.name == "posix" and lock is not None else (),
            )

    def poll(self) -> int | None:
        code = self.process.poll()
        self._follow()
        if code is not None:
            self._take(self._rest.decode(errors="replace").strip())  # a last line without its end
            self._rest = b""
            self._signal_group(signal.SIGTERM)  # processes that a killed one left behind
        return code

    def interrupt(self) -> None:
        if not self.interrupted:
            self.interrupted = True
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)

    def kill(self) -> None:
        self.interrupted = True
        if os.name == "posix":
            self._signal_group(signal.SIGKILL)
        else:
            self.process.kill()

    def _signal_group(self, number: int) -> None:
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def _follow(self) -> None:
        with self.log.open("rb") as stream:
            stream.seek(self._read_to)
            new = stream.read()
        self._read_to += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            self._take(line.decode(errors="replace").strip())

    def _take(self, line: str) -> None:
        try:
            event = json.loads(line)
            kind = event.get("event")
        except (ValueError, AttributeError):  # not JSON, or JSON that is no object
            self.last_words = line.removeprefix("fmtlbench: ") or self.last_words
            return
        if kind == "begin":
            self.round, self.rounds = event["done"], event["rounds"]
        elif kind == "round":
            self.round, self.rounds, self.eta = event["round"], event["rounds"], event.get("eta_seconds")


def _prepare(parent: int) -> Callable[[], None]:
    """Set up the new process before it becomes the run."""

    def prepare() -> None:
        # A shell's background jobs ignore it and Ray's processes block it, and so would their children.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if _PRCTL is not None:  # Linux: if this process is killed, the run is interrupted
            _PRCTL(_SET_PARENT_DEATH_SIGNAL, signal.SIGINT)
            if os.getppid() != parent:  # killed already
                os._exit(1)

    return prepare


class LocalJobs:
    """Starts runs side by side.

    Args:
        jobs: How many there are at a time.
        gpus: Values of CUDA_VISIBLE_DEVICES, one GPU each, that runs are spread over; none leaves the choice to them.
    """

    def __init__(self, jobs: int = 1, gpus: Sequence[str] = ()) -> None:
        self.jobs, self.gpus = jobs, list(gpus) if jobs > 1 and len(gpus) > 1 else []
        self._at_work: list[tuple[str, LocalJob]] = []

    def start(self, run: PlannedRun, command: list[str], log: Path, lock: int) -> LocalJob:
        """Start a run where there is most room."""
        environment = self._environment(run)
        gpu = self._emptiest()
        if gpu is not None:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        child = LocalJob(command, log, environment, lock)
        if gpu is not None:
            self._at_work.append((gpu, child))
        return child

    def _environment(self, run: PlannedRun) -> dict[str, str]:
        """Return a run's environment: runs side by side share the cores, unless config or user set their threads."""
        environment = dict(os.environ)
        if self.jobs > 1 and run.config.train.threads is None:
            environment.setdefault("OMP_NUM_THREADS", str(max(1, cores() // self.jobs)))
        return environment

    def _emptiest(self) -> str | None:
        """Return the GPU with the fewest runs, the first of several."""
        self._at_work = [(gpu, child) for gpu, child in self._at_work if child.process.returncode is None]
        busy = [gpu for gpu, _ in self._at_work]
        return min(self.gpus, key=busy.count, default=None)


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
