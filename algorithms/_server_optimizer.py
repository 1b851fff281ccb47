"""Optimisers on the server: the mean update of a group is their gradient, the common row what they train.

Reddi et al., ICLR 2021, arXiv:2003.00295, whose third one, FedAdagrad, is not here: its steps only ever shrink, and no
paper on federated multi-task learning compares with it. Where running statistics travel, they are averaged plainly: a
mean needs no momentum. A group of which nobody came in a round keeps its moments as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..exchange import Party, Round
from ..exchange.common_rows import Rule
from ._groups import Group, GroupedWithState

if TYPE_CHECKING:
    from torch import Tensor


class ServerOptimizer(GroupedWithState):
    """Base of such methods: a method says by which rule the common row moves."""

    roles = ("shares", "averages")
    state = "moments"  # m, and v under it if there is one: [1 or 2, d]

    def __init__(self, params: Any, parties: Sequence[Party], rule: Rule) -> None:
        super().__init__(params, parties)
        self.rule = rule

    def common_row(self, group: Group, rnd: Round) -> Tensor:
        return self.move(group, self.rule)
