"""Runs as processes of this machine, which share its cores and its GPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .child import Child
from .plan import PlannedRun


class Here:
    """Starts runs side by side.

    Args:
        jobs: How many there are at a time.
        gpus: Values of CUDA_VISIBLE_DEVICES, one GPU each, that runs are spread over; none leaves the choice to them.
    """

    def __init__(self, jobs: int = 1, gpus: Sequence[str] = ()) -> None:
        self.jobs, self.gpus = jobs, list(gpus) if jobs > 1 and len(gpus) > 1 else []
        self._at_work: list[tuple[str, Child]] = []

    def start(self, run: PlannedRun, command: list[str], log: Path, lock: int) -> Child:
        """Start a run where there is most room."""
        environment = self._environment(run)
        gpu = self._emptiest()
        if gpu is not None:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        child = Child(command, log, environment, lock)
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
