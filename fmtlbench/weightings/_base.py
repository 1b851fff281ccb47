"""How a client weighs the losses of its tasks against each other: the hooks a weighting may fill in.

An axis of its own: every weighting goes with every method (`--set train.weighting=uw`). A client with one task has
nothing to weigh, so its training is the same with all of them, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

WEIGHTINGS: Registry[type[Weighting]] = Registry("weighting", "fmtlbench.weightings")


class Weighting:
    """Of one client with two tasks or more, for as long as the run lasts; its state never travels.

    One of two things is filled in. `total` makes one loss of all tasks', which is then differentiated once: it decides
    the gradients of encoder, decoders and heads. Or, with `needs_gradients`, `combine` makes one gradient of the
    encoder from those of the tasks, each of which costs a backward pass; decoders and heads get their own task's.

    Random draws come from torch's global generator on the CPU: the engine has seeded it for the client and the round.
    """

    name: ClassVar[str]
    title: ClassVar[str]  # as printed in tables, behind a "+"
    paper: ClassVar[str]  # authors, venue, arXiv
    # Whether the fixed weights of the tasks (tasks' own, train.loss_weights) are left out because the result would not
    # depend on them by design. Else they multiply the losses before any hook sees these.
    scale_free: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = False  # of each task with respect to the encoder
    needs_losses_again: ClassVar[bool] = False  # after the step, on the same batch: one more pass forward

    # What `weights` tells, [m], detached: it is copied from a device only when somebody asks.
    last: Tensor | np.ndarray | None = None

    @dataclass(frozen=True)
    class Params:
        """Options with their defaults; `--set train.weighting_options.<field>=value` changes one."""

    def __init__(self, params: Any, tasks: Sequence[str]) -> None:
        self.params = params
        self.tasks = tuple(tasks)

    def parameters(self) -> list[nn.Parameter]:
        """Return what is learned beside the network, by the client's kind of optimiser and rate, without decay.

        `total` gives them gradients by being differentiated; `combine` sets their `.grad` itself.
        """
        return []

    def total(self, losses: Tensor) -> Tensor:
        """Return the one loss that is differentiated, from the tasks' losses in the order of `tasks`. [m] → []."""
        return losses.sum()

    def combine(self, gradients: Tensor, losses: Tensor) -> Tensor:
        """Return the encoder's gradient from the tasks', [m, d] → [d]; `losses` are detached, [m]."""
        return gradients.sum(0)

    def after_step(self, losses: Tensor, losses_again: Callable[[], Tensor]) -> None:
        """Learn from the step that was just taken: losses before it, and on request after it, both detached, [m]."""

    def end_epoch(self, means: Tensor) -> None:
        """Hear the mean loss of every task over a local epoch, [m]; epochs of all rounds come one after the other."""

    def weights(self) -> list[float] | None:
        """Return the weight of each task in the last step, for the run's records; None where there is no such thing."""
        return None if self.last is None else self.last.tolist()

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next step depends on: a tree of tensors and JSON values."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        if state:
            raise ValueError(f"{self.name} keeps no state, but a checkpoint holds {sorted(state)}")
