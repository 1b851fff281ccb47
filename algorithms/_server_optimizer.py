"""Optimisers on the server: the mean update of a group is their gradient, the common row what they train.

Reddi et al., ICLR 2021, arXiv:2003.00295, whose third one, FedAdagrad, is not here: its steps only ever shrink, and no
paper on federated multi-task learning compares with it. Where running statistics travel, they are averaged plainly: a
mean needs no momentum. A group of which nobody came in a round keeps its moments as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..exchange import Party, Round
from ..exchange.common_rows import Rule, optimize_mean
from ._groups import Group, Grouped, GroupStates
from ._server_step import append_mean_statistics

if TYPE_CHECKING:
    from torch import Tensor


class ServerOptimizer(Grouped):
    """Base of such methods: a method says by which rule the common row moves."""

    roles = ("shares", "averages")

    def __init__(self, params: Any, parties: Sequence[Party], rule: Rule) -> None:
        super().__init__(params, parties)
        self.rule = rule
        self.states = GroupStates("moments")  # m, and v under it if there is one, of each group; [1 or 2, d]

    def common_row(self, group: Group, rnd: Round) -> Tensor:
        rows, width = group.rows, group.rows.parameters
        moments = self.states.vectors["moments"]
        new, moments[group.name] = optimize_mean(
            rows.after[:, :width], rows.before[:, :width], group.shares, self.rule, moments.get(group.name)
        )
        return append_mean_statistics(new, group)

    def state_dict(self) -> dict[str, Any]:
        return self.states.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.states.load_state_dict(state)
