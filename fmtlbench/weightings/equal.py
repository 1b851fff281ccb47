"""Equal: the sum of the losses, each times its task's fixed weight. What every paper of the zoo does."""

from __future__ import annotations

from ._base import WEIGHTINGS, Weighting


@WEIGHTINGS.register("equal")
class Equal(Weighting):
    """Sum of the losses with fixed weights."""

    title = "Equal"
    paper = "baseline of every paper"
