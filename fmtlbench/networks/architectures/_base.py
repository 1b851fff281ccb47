"""The base class of architectures: a description that does not need torch, and a method that builds the network."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ...base.registry import Registry
from ..catalog import Maps

if TYPE_CHECKING:
    from ...config.run_config import RunConfig
    from ..backbones import Encoder
    from ..net import DenseNet

ARCHITECTURES: Registry[type[Architecture]] = Registry("architecture", "fmtlbench.networks.architectures")


class Architecture:
    """A network: which maps of the encoder it decodes, its options, how it is built and trained.

    Put its modules into a file that only `build` imports, so that a config can be checked without torch.
    """

    name: ClassVar[str]
    title: ClassVar[str]  # as printed in lists
    description: ClassVar[str]  # what follows the encoder, in one line
    paper: ClassVar[str]  # authors, venue, arXiv
    maps: ClassVar[Maps] = "pyramid"  # which maps of the encoder it decodes; models/catalog.py describes them
    # Whether one decoder serves all tasks, so that the models of any clients have the same shapes.
    one_decoder: ClassVar[bool] = False

    @dataclass(frozen=True)
    class Params:
        """Options with their defaults; `--set model.options.<field>=value` changes one."""

    def __init__(self, params: Any) -> None:
        self.params = params

    @classmethod
    def has_option(cls, name: str) -> bool:
        """Return whether the network has an option of this name."""
        return any(field.name == name for field in dataclasses.fields(cls.Params))

    @classmethod
    def refuses(cls, params: Any, config: RunConfig) -> str | None:
        """Return why the network cannot be used in a run with this config; None if it can."""
        return None

    def build(self, encoder: Encoder, outputs: dict[str, int], federation_outputs: dict[str, int]) -> DenseNet:
        """Build the network of one client.

        Args:
            encoder: With `maps` as asked for.
            outputs: Task → number of output channels, of the client's own tasks.
            federation_outputs: The same for all tasks of the federation, in an order that all clients share; where
                clients differ, the largest number.
        """
        raise NotImplementedError

    def task_steps(self, tasks: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the tasks of each optimiser step on a batch; by default one step learns all of them."""
        return [tasks]

    @property
    def adds_up_gradients(self) -> bool:
        """Whether a step on a batch also carries the gradients of the steps before it."""
        return False
