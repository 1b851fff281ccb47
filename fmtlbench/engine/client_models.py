"""Build a client's network from the config, initialised from named seeds, or reckon what its models take."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

from ..base.errors import UsageError
from ..base.seeds import seed_of
from ..config.run_config import ModelConfig, RunConfig
from ..data.configured_tasks import task_specs
from ..exchange import Party
from ..networks.backbones import Encoder
from ..networks.net import DenseNet
from ..networks.network import network_of
from ..networks.weights import starting_point

# Numbers per parameter that optimisers keep.
MOMENTS = {"adamw": 2, "adam": 2, "sgd": 1}
_counted: dict[tuple[str, tuple[str, ...], int, str], int] = {}


def build_client_model(config: RunConfig, party: Party) -> DenseNet:
    """Build the network of one client of a run."""
    size = config.data.size[party.dataset]
    outputs = task_outputs(config, party.dataset, party.tasks)
    everybody: dict[str, int] = {}
    for member in (*config.scenario.parties(), party):  # unseen clients do not enlarge the networks of others
        for task, n in task_outputs(config, member.dataset, member.tasks).items():
            everybody[task] = max(n, everybody.get(task, 0))
    return build_model(config.model, size, outputs, config.seed, everybody)


def build_shapes(config: RunConfig, party: Party) -> DenseNet:
    """Build the network of one client of a run without weights or storage: enough to count what it has and does."""
    scratch = dataclasses.replace(config.model, pretrained=False, weights=None, init="torch")
    with torch.device("meta"):
        return build_client_model(dataclasses.replace(config, model=scratch), party)


def client_memory(config: RunConfig, party: Party, tracks: int) -> int:
    """Reckon the bytes of a client's models, gradients and optimisers. What a batch takes besides is not in it."""
    kind = (party.dataset, party.tasks, tracks, config.hash())
    if kind not in _counted:
        numbers = sum(parameter.numel() for parameter in build_shapes(config, party).parameters())
        copies = 2 + MOMENTS[config.train.optimizer] + config.train.amsgrad
        _counted[kind] = 4 * numbers * copies * tracks
    return _counted[kind]


def task_outputs(config: RunConfig, dataset: str, tasks: tuple[str, ...]) -> dict[str, int]:
    """Return the output channels by task for a client of `dataset`."""
    classes, specs = config.data.dataset(dataset).classes, task_specs(config, dataset)
    return {task: specs[task].outputs(classes) for task in tasks}


def build_model(
    config: ModelConfig,
    size: tuple[int, int],
    outputs: dict[str, int],
    seed: int,
    everybody: dict[str, int] | None = None,
) -> DenseNet:
    """Build the network for one client.

    All clients start from the same encoder, and all decoders from the same weights, whatever the task, so that the
    first average is of related models; heads with equal task and number of outputs start equal. `everybody` holds the
    outputs of all tasks of the federation, which a network with one decoder for all tasks needs.
    """
    network = network_of(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(seed, "init", "encoder"))
        encoder = Encoder(config.backbone, size, starting_point(config), config.drop_path, network.maps)
        if any(edge % encoder.stride for edge in size):
            raise UsageError(f"data.size: {config.backbone} needs multiples of {encoder.stride}, got {list(size)}")
        model = network.build(encoder, outputs, everybody or outputs)
        if config.init == "lecun" and not starting_point(config):
            _reset(encoder, seed_of(seed, "init", "encoder weights"), config.init)
        for kind, task, module in model.parts():
            if kind == "decoder":
                _reset(module, seed_of(seed, "init", "decoder"), config.init)
            elif kind == "head":
                _reset(module, seed_of(seed, "init", "head", task, outputs[task]), config.init)
    return model


def _reset(module: nn.Module, seed: int, init: str) -> None:
    torch.manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)) and init == "lecun":
            nn.init.normal_(layer.weight, std=_count_inputs(layer) ** -0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def _count_inputs(layer: nn.Module) -> int:
    """Return how many values each output is a sum of; the transposed convolutions here do not overlap."""
    return layer.in_channels if isinstance(layer, nn.ConvTranspose2d) else layer.weight[0].numel()
