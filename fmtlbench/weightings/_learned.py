"""What weightings share that learn one number per task beside the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ._base import Weighting
from ._state import check_keys, check_tensor

if TYPE_CHECKING:
    from torch import Tensor, nn


class Learned(Weighting):
    """A weighting with a parameter s_t per task, which the client's optimiser updates."""

    start: ClassVar[float] = 0.0  # of every s_t

    def __init__(self, params: Any, tasks: Sequence[str]) -> None:
        import torch

        super().__init__(params, tasks)
        self.s = torch.nn.Parameter(torch.full((len(self.tasks),), self.start))

    def parameters(self) -> list[nn.Parameter]:
        return [self.s]

    def state_dict(self) -> dict[str, Any]:
        return {"s": self.s.detach()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_keys(self.name, state, ["s"])
        self.load_s(state["s"])

    def load_s(self, value: Tensor) -> None:
        """Take over the values of s in place: the optimiser holds the parameter itself."""
        self.s.data.copy_(check_tensor(self.name, "s", value, (len(self.tasks),)))
