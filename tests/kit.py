"""The kit of most tests: four federations, three sizes of runs, a network of one's own, and what makes them.

| federation | clients |
|---|---|
| DUO | one with one task, one with two |
| TWINS | two alike |
| THREE | two alike and one of its own kind |
| TRIO | one with one, one with two, one with four tasks |

A run of TINY takes about a second; QUICK has one epoch of small squares; FEW has as few images as there can be.
"""

from __future__ import annotations

import json

DUO = """\
description: one single-task and one two-task client
paper: none
version: 1
clients:
  - {dataset: pascal, tasks: [human_parts]}
  - {dataset: nyud, tasks: [depth, edge]}
evaluation: [global, personal]
"""

TWINS = """\
description: two alike clients
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth, edge], count: 2}
"""

THREE = """\
description: two alike clients and one of its own kind
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth, normals], count: 2}
  - {dataset: pascal, tasks: [human_parts]}
"""

TRIO = """\
description: one single-task, one two-task and one four-task client
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth, edge, normals, semseg], id: four}
  - {dataset: pascal, tasks: [sal], id: one}
  - {dataset: pascal, tasks: [normals, edge], id: two}
"""

SQUARES = {"data.size": {"pascal": [32, 32], "nyud": [32, 32]}}
WIDE = {"data.size": {"pascal": [32, 64], "nyud": [32, 64]}}  # where instance norm needs two positions

TINY = {
    "data.train_samples": {"pascal": 16, "nyud": 12},
    "data.test_samples": {"pascal": 4, "nyud": 4},
    "data.size": {"pascal": [32, 32], "nyud": [32, 64]},
    # The preset's network and rate are chosen for scores and may change; what tests find must not.
    "model.backbone": "swin_nano",
    "model.pretrained": False,
    "train.lr": 6e-3,
    "train.clip_norm": None,
    "train.batch_size": 4,
    "train.local_epochs.nyud": 2,
    "evaluation.every": 2,
}
QUICK = {**TINY, **SQUARES, "train.local_epochs.nyud": 1}
# What is asked of every method is asked with two batches, or one in two epochs.
SMALLER = {
    **SQUARES,
    "data.train_samples": {"pascal": 8, "nyud": 4},
    "data.test_samples": {"pascal": 2, "nyud": 2},
}
FEW = {**TINY, **SMALLER}

# A network of one's own, as a file.
TOY = """\
from dataclasses import dataclass

from torch import nn

from fmtlbench.networks.architectures import ARCHITECTURES, Architecture
from fmtlbench.networks.net import PerTaskNet
from fmtlbench.base.schema import limits


class Last(nn.Conv2d):
    def forward(self, maps):
        return super().forward(maps[-1])


@ARCHITECTURES.register("toy")
class Toy(Architecture):
    title, description, paper = "Toy", "per task: a convolution of the last map", "none"

    @dataclass(frozen=True)
    class Params:
        width: int = limits(8, low=1, doc="channels")

    def build(self, encoder, outputs, federation_outputs):
        decoders = {task: Last(encoder.channels[-1], self.params.width, 1) for task in outputs}
        heads = {task: nn.Conv2d(self.params.width, n, 1) for task, n in outputs.items()}
        return PerTaskNet(encoder, decoders, heads)
"""


def as_flags(settings):
    """Settings as the command line takes them."""
    return [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def rows_of(result):
    """The rows of a run's metrics.jsonl."""
    return [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]


def make_federation(algo, scenario, **overrides):
    """The engine's federation of a config, with its data, on the CPU."""
    from fmtlbench.config.resolve import resolve
    from fmtlbench.engine.admit import admit
    from fmtlbench.engine.factory import ClientFactory
    from fmtlbench.engine.federation import Federation

    config = resolve(algo, scenario, overrides=overrides)
    admit(config)
    return Federation(ClientFactory(config, "cpu"))
