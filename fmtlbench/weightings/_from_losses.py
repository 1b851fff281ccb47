"""What weightings from losses alone share: the record of the last weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._base import Weighting

if TYPE_CHECKING:
    from torch import Tensor


class FromLosses(Weighting):
    """A weighting whose `total` leaves the weights of the step in `self.last`."""

    def __init__(self, params: Any, tasks: Sequence[str]) -> None:
        super().__init__(params, tasks)
        self.last: Tensor | None = None  # [m], detached: it is copied from the device only when somebody asks

    def weights(self) -> list[float] | None:
        return None if self.last is None else self.last.tolist()
