"""Parameters by part and operations per image of every client's network, once per kind of client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..models.complexity import flops, parameters, step_flops

_counted: dict[tuple, dict[str, Any]] = {}  # counting takes longer than a tiny run's round


def parameters_of(clients: Sequence[Any]) -> dict[str, dict[str, int]]:
    return {client.party.id: parameters(client.main.model) for client in clients}


def flops_of(clients: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Client id → operations. Shapes decide, so alike clients share the numbers; failing is no reason to fail a run."""
    found = {}
    for client in clients:
        shapes = tuple((name, tuple(p.shape)) for name, p in client.main.model.named_parameters())
        size, config = tuple(client.config.data.size[client.party.dataset]), client.config.model
        kind = (config.architecture, config.backbone, size, client.party.tasks, len(client.steps), shapes)
        if kind not in _counted:
            try:
                _counted[kind] = _of(client, size)
            except Exception as error:  # an operation the counter cannot follow, say
                _counted[kind] = {"reason": f"{type(error).__name__}: {error}"}
        counted, batch = _counted[kind], client.config.train.batch_size
        found[client.party.id] = {**counted, "batch_size": batch}
    return found


def _of(client: Any, size: tuple[int, int]) -> dict[str, Any]:
    """Per image. `train` is forward and backward for all tasks, as the run trains: all at once, or one by one (TC)."""
    model, tasks = client.main.model, client.party.tasks
    counted = {"size": list(size), "forward": flops(model, size, tasks)}
    if client.config.model.one_decoder and len(tasks) > 1:
        ways = step_flops(model, size, tasks)
        return {**counted, "train": ways["sequential" if len(client.steps) > 1 else "joint"], **ways}
    return {**counted, "train": flops(model, size, tasks, backward=True)}
