"""The hooks a method may fill in. Every hook has a default, so a method states only what is its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ..exchange import KINDS, Party, Round
from ..registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

ALGORITHMS = Registry("algorithm", "fmtlbench.algorithms")


class Local(Protocol):
    """What a local objective may look at, on the client, in every training step."""

    def squared_distance(self) -> Tensor:
        """‖θ − θ_received‖² over the shared part; differentiable in the live parameters."""


class Algorithm:
    """A federated method: what travels, what the server does with it, what changes on the client.

    `aggregate` sees flat parameters only. It may use tensor methods freely but must not modify its input.
    """

    name: ClassVar[str]
    title: ClassVar[str]  # as printed in tables
    paper: ClassVar[str]  # authors, venue, arXiv

    @dataclass(frozen=True)
    class Params:
        """Options with their defaults; `--set algo.<field>=value` changes one."""

    def __init__(self, params: Any, parties: Sequence[Party]) -> None:
        self.params = params
        self.parties = tuple(parties)

    def shared(self, index: int) -> tuple[str, ...]:
        """Which kinds of blocks travel in round `index`: any of "encoder", "decoder". Heads never do."""
        return ()

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        """New rows by kind, in the order of the rows that came. A kind left out is not sent back."""
        return {}

    def local_objective(self, local: Local) -> Tensor | None:
        """A differentiable term added to the weighted task losses."""
        return None

    def local_schedule(self, epochs: int) -> list[tuple[str, ...]]:
        """For each local epoch, the kinds of blocks that train in it."""
        return [KINDS] * epochs

    def diagnostics(self) -> dict[str, Any]:
        """Numbers worth keeping per round (hyper weights, groupings); plain JSON values."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Everything the next round depends on: a tree of tensors and JSON values."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        if state:
            raise ValueError(f"{self.name} keeps no state, but a checkpoint holds {sorted(state)}")
