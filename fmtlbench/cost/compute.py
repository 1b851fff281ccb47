"""Parameters by part and operations per image of a client's network, counted once per kind of client."""

from __future__ import annotations

from typing import Any

from ..networks.complexity import flops, parameters, step_flops

_counted: dict[tuple, dict[str, Any]] = {}  # counting takes longer than a tiny run's round


def counts_of(client: Any) -> dict[str, Any]:
    """Return {"parameters": by part, "flops": operations} of a client's network."""
    return {"parameters": parameters(client.main.model), "flops": flops_of(client)}


def flops_of(client: Any) -> dict[str, Any]:
    """Count operations. Shapes decide, so alike clients share the numbers; failing is no reason to fail a run."""
    shapes = tuple((name, tuple(p.shape)) for name, p in client.main.model.named_parameters())
    size, config = tuple(client.config.data.size[client.party.dataset]), client.config.model
    network = (config.architecture, config.code.source, config.backbone)
    kind = (*network, size, client.party.tasks, tuple(client.steps), shapes)
    if kind not in _counted:
        try:
            _counted[kind] = _of(client, size)
        except Exception as error:  # an operation the counter cannot follow, say
            _counted[kind] = {"reason": f"{type(error).__name__}: {error}"}
    return {**_counted[kind], "batch_size": client.config.train.batch_size}


def _of(client: Any, size: tuple[int, int]) -> dict[str, Any]:
    """Count per image; `train` is forward and backward for all tasks, in the steps that the network learns them in."""
    model, tasks = client.main.model, client.party.tasks
    train = sum(flops(model, size, step, backward=True) for step in client.steps)
    counted = {"size": list(size), "forward": flops(model, size, tasks), "train": train}
    # Tasks that share a decoder can be learned in either way: what the other would take is told too.
    return counted | (step_flops(model, size, tasks) if client.network.one_decoder and len(tasks) > 1 else {})
