"""Columns of tables and panels of figures: a dataset's task, in the papers' order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..runs.folder import everybody
from ..tasks import column_of
from .labels import dataset_titles
from .runs import RunRecord

At = tuple[str, str, str]  # dataset, task, metric
SINGLE, MULTI, MIXED = "ST", "MT", "mixed"


def kinds_of_clients(members: Mapping[At, Collection[str]], runs: Sequence[RunRecord]) -> dict[At, str]:
    """Say of every column whether its clients have one task, several, or some the one and some the other."""
    clients: dict[str, Any] = {client["id"]: client for run in reversed(runs) for client in everybody(run.summary)}
    found = {}
    for at, ids in members.items():
        alone = {len(clients[client]["tasks"]) == 1 for client in ids}
        found[at] = MIXED if len(alone) > 1 else SINGLE if alone.pop() else MULTI
    return found


def order_columns(members: Mapping[At, Collection[str]], runs: Sequence[RunRecord]) -> list[At]:
    """Sort columns, given with the clients that each averages, as the papers' tables do."""
    kinds = kinds_of_clients(members, runs)
    order = {client["id"]: i for i, client in enumerate(everybody(runs[0].summary))}
    datasets = list(dict.fromkeys(client["dataset"] for run in runs for client in everybody(run.summary)))

    def place(at: At) -> tuple:
        alone = kinds[at] == SINGLE
        # Single-task clients stand in the order of their tasks, others in the scenario's.
        first = 0 if alone else min(order.get(client, len(order)) for client in members[at])
        return (datasets.index(at[0]), not alone, first, column_of(at[1]))

    return sorted(members, key=place)


def names_of_datasets(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Return what to call each dataset: its title, or its name where the runs do not agree in one."""
    titles: dict[str, set[str]] = {}
    for run in runs:
        for dataset, title in dataset_titles(run.summary).items():
            titles.setdefault(dataset, set()).add(title)
    return {dataset: min(found) if len(found) == 1 else dataset for dataset, found in titles.items()}
