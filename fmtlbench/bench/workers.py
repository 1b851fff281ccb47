"""Does what a plan misses: some runs at a time, each in its own process, with retries, a budget and clean stops."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .absences import note_failed, note_finished
from .display import Display
from .estimate import Pace
from .local_jobs import WRONG_USAGE, Job, LocalJobs
from .plan import Plan, PlannedRun
from .reservations import Reservation, reserve, worked_on

PAUSE = 0.1  # seconds between two looks at the running processes
LOOK_AGAIN = 1.0  # seconds between two looks at runs that others have
GRACE = 30.0  # seconds an interrupted run has before it is killed; its last complete round is on disk either way
STOPS = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass
class Record:
    """What became of one run."""

    run: PlannedRun
    outcome: str = "left"  # "ran", "reused", "elsewhere" (another bench did it), "failed" or "left"
    seconds: float = 0.0
    attempts: int = 0
    error: str | None = None
    log: str | None = None


@dataclass
class Outcome:
    """What became of the plan; `stopped` is None, "budget" or "interrupt"."""

    plan: Plan
    records: dict[PlannedRun, Record]
    seconds: float = 0.0
    stopped: str | None = None

    def count(self, outcome: str) -> int:
        return sum(record.outcome == outcome for record in self.records.values())

    @property
    def complete(self) -> bool:
        return not self.count("failed") and not self.count("left")


@dataclass
class _Working:
    run: PlannedRun
    job: Job
    reservation: Reservation
    began: float = field(default_factory=time.monotonic)
    told: bool = False  # the display knows that it has started


class Hosts(Protocol):
    """Where processes are: on this machine (local_jobs.py) or on those of a cluster (ray_jobs.py)."""

    def start(self, run: PlannedRun, command: list[str], log: Path, lock: int) -> Job:
        """Start `command`, which does `run`; an OSError says that it cannot be."""


class Workers:
    """The one loop. Single-threaded: what prepares a new process must not run beside other threads.

    Args:
        plan: What to do; its finished runs are reused.
        command: A run → the command line that does it.
        display: Told what happens.
        pace: Learns from every run that ends well.
        jobs: Runs at a time.
        retries: How often a run that failed is tried again, after the others.
        budget: Seconds after which nothing new is started and what runs is interrupted.
        hosts: Where the processes are; by default on this machine.
    """

    def __init__(
        self,
        plan: Plan,
        command: Callable[[PlannedRun], list[str]],
        display: Display,
        pace: Pace,
        jobs: int = 1,
        retries: int = 1,
        budget: float | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        self.plan, self.command, self.display, self.pace = plan, command, display, pace
        self.jobs, self.retries, self.budget = jobs, retries, budget
        self.hosts = LocalJobs(jobs) if hosts is None else hosts
        self.queue = deque(plan.missing())
        self.elsewhere: list[PlannedRun] = []
        self.open_elsewhere: set[PlannedRun] = set()  # by a process that reserves nothing
        self.working: list[_Working] = []
        self.outcome = Outcome(plan, {run: Record(run) for run in plan.runs})
        for run, record in self.outcome.records.items():
            record.outcome = "reused" if run.state == "done" else "left"
        self.bench = plan.out / ".bench"
        self._signals = 0
        self._kill_at = 0.0
        self._looked = 0.0

    def work(self) -> Outcome:
        """Work until everything is done, failed, or stopped."""
        self.began = time.monotonic()
        with self._signals_counted():
            try:
                while self.queue or self.working or self.elsewhere:
                    self._reap()
                    self._stop_if_asked()
                    if self.outcome.stopped is None:
                        self._start()
                    elif not self.working:
                        break
                    self.display.tick(self)
                    if self.queue or self.working or self.elsewhere:
                        time.sleep(PAUSE)
            finally:
                for working in self.working:  # only if something went wrong here
                    working.job.kill()
                self.display.end()
        self.outcome.seconds = time.monotonic() - self.began
        return self.outcome

    # -- stopping ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _signals_counted(self) -> Iterator[None]:
        """Let the first signal stop cleanly and the second kill; what was ignored before (nohup) stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {}
        for name in STOPS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, self._count_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _count_signal(self, *_) -> None:
        self._signals += 1

    def _stop_if_asked(self) -> None:
        now = time.monotonic()
        if self.outcome.stopped is None:
            if self._signals:
                self._stop("interrupt", "stopping: the runs at work keep their last complete round; Ctrl-C again kills")
            elif self.budget is not None and now - self.began >= self.budget:
                self._stop("budget", "the budget is used up: the runs at work stop and keep their last complete round")
        elif self._signals > (self.outcome.stopped == "interrupt") or now > self._kill_at:
            for working in self.working:
                working.job.kill()

    def _stop(self, why: str, message: str) -> None:
        self.outcome.stopped = why
        self._kill_at = time.monotonic() + GRACE
        for working in self.working:
            working.job.interrupt()
        if self.working:
            self.display.note(message)

    # -- starting ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if not self.queue and self.elsewhere and time.monotonic() - self._looked > LOOK_AGAIN:
            self._looked = time.monotonic()
            self.queue.extend(self.elsewhere)
            self.elsewhere.clear()
        while self.queue and len(self.working) < self.jobs:
            self._start_one(self.queue.popleft())

    def _start_one(self, run: PlannedRun) -> None:
        taken = reserve(self.bench, run.key)
        if taken is None:
            self.elsewhere.append(run)
            return
        if run in self.open_elsewhere and not run.finished() and worked_on(run.store.folder):
            taken.release()
            self.elsewhere.append(run)
            return
        if run.finished():  # since the plan was made
            taken.release()
            self._settle(run, "elsewhere")
            return
        record = self.outcome.records[run]
        record.attempts += 1
        log = self.bench / "logs" / run.config.folder().with_name(f"{run.store.folder.name}.log")
        record.log = str(log)
        try:
            job = self.hosts.start(run, self.command(run), log, taken.fileno())
        except OSError as error:  # no memory, no file handles
            taken.release()
            self._fail(run, f"could not be started: {error}", again=True)
            return
        self.working.append(_Working(run, job, taken))
        if job.waiting:
            self.display.queued(run, record.attempts)
        self._tell_started(self.working[-1])

    def _tell_started(self, working: _Working) -> None:
        """Say it once, when the process has found its place; time counts from then."""
        if not working.told and not working.job.waiting:
            working.told, working.began = True, time.monotonic()
            self.display.started(working.run, self.outcome.records[working.run].attempts)

    # -- ending ------------------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        for working in list(self.working):
            code = working.job.poll()
            self._tell_started(working)
            if code is not None:
                self.working.remove(working)
                if working.told:
                    self.outcome.records[working.run].seconds += time.monotonic() - working.began
                try:
                    self._ended(working, code)
                finally:
                    working.reservation.release()

    def _ended(self, working: _Working, code: int) -> None:
        run, job = working.run, working.job
        if code == 0 and (run.finished() or run.finished_by_newer_code()):
            self.pace.learn(run.config, run.store.folder)
            self._settle(run, "ran")
        elif job.interrupted:
            self.queue.append(run)
        elif job.lost:  # what is left of it may still be at work: whoever tries again waits for that
            self.open_elsewhere.add(run)
            self._fail(run, job.ending(code), again=True)
        elif code == 0:
            self._fail(run, f"ended without a result in {run.store.folder}", again=True)
        elif worked_on(run.store.folder):  # not this run's fault
            self.outcome.records[run].attempts -= 1
            self.open_elsewhere.add(run)
            self.elsewhere.append(run)
        else:
            self._fail(run, job.ending(code), again=code != WRONG_USAGE)

    def _settle(self, run: PlannedRun, outcome: str) -> None:
        record = self.outcome.records[run]
        record.outcome, record.error = outcome, None
        note_finished(run)
        self.display.settled(record, self)

    def _fail(self, run: PlannedRun, error: str, again: bool) -> None:
        record = self.outcome.records[run]
        record.error = error
        if again and record.attempts <= self.retries and self.outcome.stopped is None:
            self.queue.append(run)
            self.display.retrying(record)
        else:
            self._settle_failed(record)

    def _settle_failed(self, record: Record) -> None:
        record.outcome = "failed"
        note_failed(record.run, record.error)
        self.display.settled(record, self)

    # -- for the display ---------------------------------------------------------------------------------------------

    def settled(self) -> int:
        return sum(record.outcome != "left" for record in self.outcome.records.values())

    def seconds_left(self) -> float | None:
        """Estimate the time until the end, if every run that is left has a basis for it."""
        left = [(w.run, w.job.eta) for w in self.working] + [(r, None) for r in (*self.queue, *self.elsewhere)]
        each = [self.pace.seconds(run) if eta is None else eta for run, eta in left]
        if any(seconds is None for seconds in each):
            return None
        return max(sum(each) / self.jobs, max(each, default=0.0))
