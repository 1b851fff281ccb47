"""What crosses the server boundary: rows of flat parameters with a layout, never dicts of names.

No torch import: methods work on these values with tensor methods alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

PART_KINDS = ("encoder", "decoder", "head")  # what a network's parts are
TRAVELLING_KINDS = ("encoder", "decoder")  # of which rows may travel


class Owner(NamedTuple):
    """Whose parameters a row holds: a client's, and of which task where the part belongs to one."""

    client: int
    task: str | None = None
    track: str = "main"  # of the client's models, where more than one travels

    def name(self, parties: Sequence[Party]) -> str:
        """Return the client's id, with "/" and the task where the row belongs to one: the same in any numbering."""
        return "/".join(filter(None, (parties[self.client].id, self.task)))


class TensorSlice(NamedTuple):
    """One tensor inside a row: a parameter, or running statistics where these travel."""

    name: str
    layer: str
    start: int
    stop: int
    statistic: bool = False
    norm: str = ""  # of a normalisation layer: "batch", or "other" (layer, group and instance norms)


@dataclass(frozen=True)
class Party:
    """What the server knows of a client."""

    index: int
    id: str
    dataset: str
    tasks: tuple[str, ...]
    samples: int
    merged: bool = False  # its decoders travel as one row

    @property
    def decoders(self) -> int:
        """Return how many decoder rows it sends."""
        return 1 if self.merged else len(self.tasks)


@dataclass(frozen=True)
class Rows:
    """The same part of several models, one row each: N encoders, or K = Σ|T_i| decoders."""

    owners: tuple[Owner, ...]
    before: Tensor  # [R, d] at the start of the round's local training
    after: Tensor  # [R, d] at its end
    tensors: tuple[TensorSlice, ...]

    @cached_property
    def delta(self) -> Tensor:
        """Return after − before, [R, d], computed once."""
        return self.after - self.before

    @property
    def parameters(self) -> int:
        """Return how many of a row's first columns are parameters; running statistics, if they travel, follow."""
        return next((t.start for t in self.tensors if t.statistic), self.after.shape[1])

    def names(self, parties: Sequence[Party]) -> list[str]:
        """Return a name per row, as its owner has it."""
        return [owner.name(parties) for owner in self.owners]

    @property
    def layers(self) -> tuple[str, ...]:
        """Return the names of the layers, in the order of the row."""
        return tuple(dict.fromkeys(t.layer for t in self.tensors))


@dataclass(frozen=True)
class Round:
    """One round as the server sees it. A part that does not travel is None."""

    index: int  # from 0
    parties: tuple[Party, ...]
    encoder: Rows | None = None
    decoder: Rows | None = None
    steps: Mapping[int, int] = field(default_factory=dict)  # client → optimiser steps it took in the round
    measured: Mapping[int, Mapping[str, Tensor]] = field(default_factory=dict)  # client → what `measure` told
