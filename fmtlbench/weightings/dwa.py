"""DWA: tasks whose loss fell less over the last epoch get more weight.

In epoch e, Σ_t w_t L_t with w = m · softmax_t(L̄_t(e−1) / L̄_t(e−2) / T), where L̄ are means over local epochs, counted
through all rounds, and m is the number of tasks; 1 in the first two epochs. Liu, Johns and Davison, CVPR 2019,
arXiv:1803.10704. T = 2 as in the paper. A ratio that is none, since the earlier mean was 0, counts as 1.

A factor of a loss leaves its ratio alone but multiplies its gradient: the fixed weights of the tasks are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.schema import limits
from ._base import WEIGHTINGS, Weighting
from ._state import check_keys, check_numbers

if TYPE_CHECKING:
    from torch import Tensor


@WEIGHTINGS.register("dwa")
class DWA(Weighting):
    """Dynamic weight average."""

    title = "DWA"
    paper = "Liu et al., CVPR 2019, arXiv:1803.10704"

    @dataclass(frozen=True)
    class Params:
        temperature: float = limits(2.0, above=0, doc="T; the larger, the more alike the weights")

    params: Params

    def __init__(self, params: Params, tasks: Sequence[str]) -> None:
        super().__init__(params, tasks)
        self.means: list[list[float]] = []  # of the last two epochs at most, the last one last

    def total(self, losses: Tensor) -> Tensor:
        self.last = losses.new_tensor(self._weights())
        return (self.last * losses).sum()

    def _weights(self) -> np.ndarray:
        if len(self.means) < 2:
            return np.ones(len(self.tasks))
        earlier, last = map(np.array, self.means)
        ratio = np.divide(last, earlier, out=np.full(len(last), np.nan), where=earlier != 0)
        exponent = np.where(np.isfinite(ratio), ratio, 1.0) / self.params.temperature
        powers = np.exp(exponent - exponent.max())
        return len(powers) * powers / powers.sum()

    def end_epoch(self, means: Tensor) -> None:
        self.means = [*self.means, means.tolist()][-2:]

    def state_dict(self) -> dict[str, Any]:
        return {"means": self.means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_keys(self.name, state, ["means"])
        if not isinstance(state["means"], (list, tuple)) or len(state["means"]) > 2:
            raise ValueError(f"{self.name} keeps the means of up to two epochs, a checkpoint holds {state['means']!r}")
        self.means = [check_numbers(self.name, "means", each, len(self.tasks)) for each in state["means"]]
