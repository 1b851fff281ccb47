"""Methods that assume one common model, for clients whose tasks differ: one common row per group of rows.

All encoders are one group. All decoders are one, as in FedHCA²'s FedAvg, or those of each task (`decoders=task`), or
they stay home (`shared=encoder`). What a server keeps (momentum, control variates, …) it keeps per group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Party, Round, Rows
from ..exchange.algebra import empty_like, mean, rows_by_kind
from ..exchange.common_rows import Rule, optimize_mean
from ._mean import Weighting, by_task, row_weights
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Group:
    """Rows that have one common row, and what each of them counts."""

    name: str  # "encoder", "decoder", or "decoder/depth"
    rows: Rows
    places: tuple[int, ...]  # where they stand among all rows of their kind
    shares: np.ndarray  # what each row counts; they add up to one. [R]
    equal: bool  # whether all count alike

    @cached_property
    def mean_after(self) -> Tensor:
        """What plain averaging would send. [d]."""
        return self.mean_of(self.rows.after)

    def mean_of(self, matrix: Tensor) -> Tensor:
        """Return the mean of rows by their shares, [R, d] → [d]."""
        return mean(matrix) if self.equal else matrix.new_tensor(self.shares) @ matrix

    def row_of(self, parameters: Tensor) -> Tensor:
        """Return the group's new row from its new parameters: running statistics, if they travel, are averaged. [d]."""
        import torch

        statistics = self.rows.after[:, len(parameters) :]
        return torch.cat([parameters, self.mean_of(statistics)]) if statistics.shape[1] else parameters


class Grouped(Sharing):
    """Base of such methods: a method says how a group's common row moves."""

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        decoders: Literal["all", "task"] = limits("all", doc="decoders with one common row: all, or those of each task")
        weighting: Weighting = limits("equal", doc="clients count alike, or by their training images")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.common = ("encoder", "decoder") if params.decoders == "all" else ("encoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        new: dict[str, Tensor] = {}
        for kind, rows in rows_by_kind(rnd):
            groups = list(self.groups(kind, rows))
            if len(groups) == 1:
                new[kind] = self.common_row(groups[0], rnd).expand_as(rows.after)
                continue
            new[kind] = empty_like(rows.after)
            for group in groups:
                new[kind][list(group.places)] = self.common_row(group, rnd)
        return new

    def common_row(self, group: Group, rnd: Round) -> Tensor:
        """Return the new common row of a group. [d]."""
        return group.mean_after

    def groups(self, kind: str, rows: Rows) -> Iterator[Group]:
        """Yield the groups of a kind's rows, in the order of their first rows."""
        weights = row_weights(rows, self.parties, self.params.weighting)
        labels = self.labels(kind, rows)
        for label in dict.fromkeys(labels):
            places = tuple(place for place, other in enumerate(labels) if other == label)
            whole = len(places) == len(labels)
            shares = weights[list(places)]
            yield Group(
                label,
                rows if whole else _choose(rows, places),
                places,
                shares / shares.sum(),
                self.params.weighting == "equal",
            )

    def labels(self, kind: str, rows: Rows) -> list[str]:
        """Return the name of each row's group."""
        if kind == "encoder" or self.params.decoders == "all":
            return [kind] * len(rows.owners)
        return [f"{kind}/{task}" for task in by_task(rows, self.parties)]

    def group_of(self, kind: str, party: Party) -> list[str]:
        """Return the names of the groups of a client's own rows of a kind, in their order."""
        if kind == "encoder" or self.params.decoders == "all":
            return [kind] * (1 if kind == "encoder" else party.decoders)
        return [f"{kind}/{task}" for task in (["+".join(sorted(party.tasks))] if party.merged else party.tasks)]

    def members(self, name: str) -> int:
        """Return how many rows a group has when everybody is there."""
        kind = name.partition("/")[0]
        return sum(self.group_of(kind, party).count(name) for party in self.parties)


class GroupedWithState(Grouped):
    """Base of those whose server keeps something of each group from round to round."""

    state: ClassVar[str]  # what checkpoints call it

    def __init__(self, params: Grouped.Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.kept: dict[str, Tensor] = {}  # by the name of the group

    def move(self, group: Group, rule: Rule) -> Tensor:
        """Return a group's common row after a rule's step of its mean update; what is kept are the rule's moments."""
        rows, width = group.rows, group.rows.parameters
        new, self.kept[group.name] = optimize_mean(
            rows.after[:, :width], rows.before[:, :width], group.shares, rule, self.kept.get(group.name)
        )
        return group.row_of(new)

    def state_dict(self) -> dict[str, Any]:
        return {self.state: dict(self.kept)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.kept = dict(state[self.state])


def _choose(rows: Rows, places: Sequence[int]) -> Rows:
    index = list(places)
    return Rows(tuple(rows.owners[k] for k in index), rows.before[index], rows.after[index], rows.tensors)
