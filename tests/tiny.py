"""A federation small enough for a test: a run takes about a second."""

from __future__ import annotations

# Two-client federation, a few images each: a run takes about a second.
SCENARIO = """\
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


def make_federation(algo, scenario, **overrides):
    """The engine's federation of a config, with its data, on the CPU."""

    from fmtlbench.config.resolve import resolve
    from fmtlbench.engine.factory import ClientFactory
    from fmtlbench.engine.federation import Federation

    config = resolve(algo, scenario, overrides=overrides)
    return Federation(ClientFactory(config, "cpu"))
