"""Turn ST_Datasets and MT_Datasets into the clients and the partition of a scenario."""

from __future__ import annotations

from typing import Any

from ..base.errors import UsageError, nearest
from ..data.datasets import domains
from ._reader import Reader

DATANAMES = {"nyud": "nyud", "pascalcontext": "pascal"}
MOST = 100_000  # clients


def domain_of(entry: Reader) -> str:
    """Return the domain of one list entry."""
    name = entry.need("dataname", "text")
    if name not in DATANAMES:
        raise UsageError(f"{entry.where('dataname')}: no dataset {name!r} here; {nearest(name, DATANAMES)}")
    return DATANAMES[name]


def clients_of(top: Reader) -> tuple[list[dict[str, Any]], list[Reader]]:
    """Return the groups of clients, single-task ones first as in the public code, and all list entries."""
    single, multi = top.entries("ST_Datasets"), top.entries("MT_Datasets")
    if not single and not multi:
        raise UsageError(f"{top.where()}: neither ST_Datasets nor MT_Datasets: not a config of FedHCA² or FMTL-Bench")
    for name, entries in (("ST_Datasets", single), ("MT_Datasets", multi)):
        domains = [domain_of(entry) for entry in entries]
        for entry, domain in zip(entries, domains):
            if domains.count(domain) > 1:
                raise UsageError(f"{entry.where('dataname')}: listed twice in {name}; the public code keeps the last")
    both = {domain_of(e) for e in single} & {domain_of(e) for e in multi}
    groups = []
    for entry in single:
        domain = domain_of(entry)
        if "client_num" in entry.data:
            entry.note("client_num", "is for MT_Datasets; here task_dict counts the clients")
        for task, count in _count_tasks(entry, domain).items():
            groups.append({"dataset": domain, "tasks": [task], "count": count, "pool": "single"})
    for entry in multi:
        domain = domain_of(entry)
        tasks = list(_count_tasks(entry, domain))
        count = entry.need("client_num", "a whole number", low=1, high=MOST)
        group = {"dataset": domain, "tasks": tasks, "count": count, "pool": "multi"}
        if len(tasks) == 1:
            group["id"] = f"{domain}-{tasks[0]}-mt"  # a single-task client may be called by the task already
        groups.append(group)
    for group in groups:
        if group["dataset"] not in both:
            del group["pool"]
        if group["count"] == 1:
            del group["count"]
    if both:
        names = " and ".join(sorted(both))
        top.notes.remarks.append(
            f"{names} is in both lists: each half deals all images anew (pool), as FMTL-Bench's code does; "
            "FedHCA²'s code would drop the single-task clients"
        )
    return groups, [*single, *multi]


def partition_of(entries: list[Reader], groups: list[dict[str, Any]]) -> str:
    """Return the scenario's partition: linear if some entry is non-IID, else equal; refuse entries that contradict."""
    uneven = {id(entry): entry.get("noniid", "true or false", False) for entry in entries}
    if not any(uneven.values()):
        return "equal"
    for entry in entries:
        several = sum(g.get("count", 1) for g in groups if g["dataset"] == domain_of(entry)) > 1
        if not uneven[id(entry)] and several:
            raise UsageError(f"{entry.where('noniid')}: differs between datasets; a scenario has one partition for all")
    return "linear"


def _count_tasks(entry: Reader, domain: str) -> dict[str, int]:
    counts = entry.inner("task_dict") if "task_dict" in entry.data else None
    if counts is None:
        raise UsageError(f"{entry.where()}: missing key 'task_dict'")
    chosen = {}
    for task in counts.data:
        if task not in (offered := domains()[domain].tasks):
            raise UsageError(f"{counts.where(task)}: {domain} has no such task; {nearest(str(task), offered)}")
        count = counts.get(task, "a whole number", low=0, high=MOST)
        if count:
            chosen[task] = count
    if not chosen:
        raise UsageError(f"{entry.where('task_dict')}: no task has a client")
    return chosen
