"""How many operations the training of planned runs takes, and how long that is on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from ..algorithms import ALGORITHMS
from ..base.schema import plain
from ..base.words import say_duration
from ..config.run_config import RunConfig
from .clients import describe_clients, describe_networks
from .plan import PlannedRun


class Operations:
    """Counts floating-point operations of training, 2 per multiply–accumulate; networks that are alike once."""

    def __init__(self) -> None:
        self._networks: dict[str, list[dict[str, Any]]] = {}

    def of_round(self, config: RunConfig) -> float:
        """Return the operations of one round: all clients' training images, as often as they have epochs.

        A method that trains several models trains each of them on all images.
        """
        costs = {(of["dataset"], tuple(of["tasks"])): _choose_cost(config, of) for of in self._describe(config)}
        total = 0.0
        for client in describe_clients(config, None):
            images = client["images"]
            if images is None:  # drawn by seed: as if shares were equal
                peers = [spec for spec in config.scenario.everybody() if spec.dataset == client["dataset"]]
                images = (config.data.train_images(client["dataset"]) or 0) / len(peers)
            images -= client.get("held_out") or 0
            epochs = config.train.local_epochs[client["dataset"]]
            total += images * epochs * costs[client["dataset"], tuple(client["tasks"])]
        method = config.algorithm.file or config.algorithm.name
        return total * len(ALGORITHMS.resolve(method).tracks)

    def of_run(self, config: RunConfig) -> float:
        """Return the operations of all rounds."""
        return config.federation.rounds * self.of_round(config)

    def _describe(self, config: RunConfig) -> list[dict[str, Any]]:
        clients = [[spec.dataset, sorted(spec.tasks)] for spec in config.scenario.everybody()]
        key = json.dumps([plain(config.model), plain(config.data.size), clients], default=str, sort_keys=True)
        if key not in self._networks:
            self._networks[key] = describe_networks(config)
        return self._networks[key]


def _choose_cost(config: RunConfig, network: dict[str, Any]) -> float:
    """Return the operations of a training image: TC networks may learn their tasks one after the other."""
    steps = network["flops_per_training_image"]
    way = config.model.options.get("task_steps", "joint")
    return steps.get(way, steps["joint"])


QUICK = 0.5  # seconds: a step that takes less is timed with the whole batch


def time_training(config: RunConfig, device: str) -> float:
    """Return the operations per second of a training step here, with the first client's network.

    One image tells enough of large networks; small ones are timed with the batch that they are trained with.
    """
    import dataclasses

    import torch

    from ..engine.client_models import build_client_model
    from ..engine.device import pick_device
    from ..networks.complexity import flops

    party = config.scenario.parties()[0]
    # speed does not depend on the weights, which may have to be fetched
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, pretrained=False, weights=None))
    place = pick_device(device)
    model = build_client_model(config, party).to(place)
    model.eval()  # a batch of one image has no statistics
    size = config.data.size[party.dataset]

    def take_step(batch: int) -> float:
        images = torch.rand(batch, 3, *size, device=place)
        began = time.perf_counter()
        sum(output.mean() for output in model(images).values()).backward()
        if place.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    if config.train.threads is not None:
        torch.set_num_threads(config.train.threads)
    take_step(1)  # warms up
    batch, seconds = 1, min(take_step(1) for _ in range(2))
    if seconds < QUICK:
        batch = config.train.batch_size
        seconds = min(take_step(batch) for _ in range(3))
    return flops(model, size, batch=batch, backward=True) / seconds


def estimate(runs: Sequence[PlannedRun], device: str) -> str:
    """Say how long the training of runs takes here, one after the other, by counting and timing one step."""
    counter = Operations()
    total = sum(counter.of_run(run.config) * run.rounds_left / run.config.federation.rounds for run in runs)
    rate = time_training(runs[0].config, device)
    return (
        f"about {say_duration(total / rate)} of training one after the other on this machine's {device}: {total:.2g} "
        f"operations counted at {rate:.2g} per second, as one step of {runs[0].config.model.backbone} took; "
        "evaluation and loading come on top"
    )
