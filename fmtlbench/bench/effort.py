"""How a plan is carried out: how much at a time, for how long, and where."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from ..base.errors import UsageError, unknown
from ..config.ray_options import check_ray_device
from ..config.request import RunRequest
from ..data.datasets import find_archive
from . import local_jobs
from .absences import note_plan
from .device import Device, find_device
from .display import Display
from .estimate import Pace, learn_pace
from .local_jobs import LocalJobs
from .plan import Plan
from .workers import Hosts, Outcome, Workers

HERE, RAY = HOSTS = ("here", "ray")  # where whole runs are: on this machine, or on those of a Ray cluster


@dataclass(frozen=True)
class Effort:
    """How much is done at a time, for how long, and where.

    Args:
        jobs: Runs at the same time.
        budget: Seconds after which nothing is started and what runs is stopped.
        retries: How often a failed run is tried again.
        hosts: Where whole runs are: "here" or on a cluster, "ray".
        ray_address: Of a running cluster: of the hosts, or of the clients where these live in one.
        cpus_per_job: That a run needs of the hosts' cluster; None: 1.
        gpus_per_job: Likewise where the device is cuda.
    """

    jobs: int = 1
    budget: float | None = None
    retries: int = 1
    hosts: str = HERE
    ray_address: str | None = None
    cpus_per_job: float | None = None
    gpus_per_job: float | None = None

    def __post_init__(self) -> None:
        for flag, value, least in (("--jobs", self.jobs, 1), ("--retries", self.retries, 0)):
            if value < least:
                raise UsageError(f"{flag} {value}: expected a whole number, {least} or more")
        if self.hosts not in HOSTS:
            raise unknown("hosts", str(self.hosts), HOSTS, "--hosts")
        for flag, each in (("--cpus-per-job", self.cpus_per_job), ("--gpus-per-job", self.gpus_per_job)):
            if each is not None and self.hosts != RAY:
                raise UsageError(f"{flag} {each}: is for --hosts ray; this command has --hosts {self.hosts}")
        if self.cpus_per_job is not None and not 0 < self.cpus_per_job < math.inf:
            raise UsageError(f"--cpus-per-job {self.cpus_per_job:g}: expected a number above 0")
        if self.gpus_per_job is not None and not 0 < self.gpus_per_job <= 1:
            raise UsageError(
                f"--gpus-per-job {self.gpus_per_job:g}: expected a number above 0, at most 1: a run uses one"
            )

    def place(self, template: RunRequest) -> RunRequest:
        """Return how runs are asked for, with the cluster of their clients; refuse what does not go together."""
        spread = template.executor == "ray"
        if spread and self.hosts == RAY:
            raise UsageError(
                "--hosts ray, --executor ray: whole runs would take the places that their clients wait for; "
                "give one of them"
            )
        if self.ray_address is not None and not spread and self.hosts != RAY:
            raise UsageError(
                f"--ray-address {self.ray_address}: is for --hosts ray or --executor ray; this command has "
                f"--hosts {self.hosts} and --executor {template.executor}"
            )
        for flag in ["--executor ray"] * spread + ["--hosts ray"] * (self.hosts == RAY):
            check_ray_device(template.device, flag)
        return replace(template, ray_address=self.ray_address) if spread else template

    def find_device(self, template: RunRequest, is_listed: bool = False) -> Device:
        """Find the device of the runs; on other machines, or if they are only listed, this one need not have it."""
        here = self.hosts == HERE and template.executor != "ray" and not is_listed
        device = find_device(template.device, here)
        if self.gpus_per_job is not None and device.kind != "cuda":
            raise UsageError(f"--gpus-per-job {self.gpus_per_job:g}: the runs are on the {device.kind}; --device cuda?")
        return device if here else Device(device.kind)

    def find_hosts(self, plan: Plan, device: Device) -> AbstractContextManager[Hosts]:
        """Return what starts the runs; a cluster must answer before anything is written."""
        if self.hosts == RAY and plan.missing():
            from .ray_jobs import ray_jobs

            gpus = (self.gpus_per_job or 1.0) if device.kind == "cuda" else 0.0
            return ray_jobs(self.ray_address, plan.out, self.cpus_per_job or 1.0, gpus)
        return nullcontext(LocalJobs(self.jobs, device.names()))


def carry_out(plan: Plan, effort: Effort, device: Device, display: Display) -> Outcome:
    """Do the runs of the plan that are missing, on the device that was found; tell what happens."""
    pace = learn_pace(plan)
    with effort.find_hosts(plan, device) as hosts:
        display.planned(plan, describe_plan(plan, effort.jobs, pace))
        for line in plan.notes():
            display.note(line)
        note_plan(plan)
        return Workers(
            plan, local_jobs.run_command, display, pace, effort.jobs, effort.retries, effort.budget, hosts
        ).work()


def check_data_root(plan: Plan, root: str | None) -> None:
    """Refuse a folder of datasets that no run would use."""
    if root is not None and not any(run.config.reads_files for run in plan.runs):
        raise UsageError(f"--data-root {root}: every run uses the embedded data; --set data.source=real?")


def check_archives(plan: Plan, root: str | None, hosts: str) -> None:
    """Refuse runs on real data that are not there, before the first of many fails; other machines have their own."""
    if hosts == RAY:
        return
    seen = set()
    for run in plan.missing():
        for domain in sorted(run.config.scenario.domains) if run.config.reads_files else ():
            if domain not in seen:
                seen.add(domain)
                find_archive(run.config.data.dataset(domain), root)


def describe_plan(plan: Plan, jobs: int, pace: Pace | None = None) -> str:
    """Say in one line how many runs there are, in which state, and how long the rest takes, at a pace that is known."""
    estimate = (pace or learn_pace(plan)).total(plan.missing(), jobs)
    counts = ", ".join(f"{count} {state}" for state, count in plan.counts().items() if count)
    return f"{len(plan.runs)} runs in {plan.out}: {counts} · training time: {estimate.text()}"
