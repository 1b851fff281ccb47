"""The first task counts more than the others."""

from dataclasses import dataclass

from fmtlbench.weightings import WEIGHTINGS, Weighting


@WEIGHTINGS.register("first_more")
class FirstMore(Weighting):
    """The first task counts more."""

    title = "First"
    paper = "nobody's"

    @dataclass(frozen=True)
    class Params:
        factor: float = 2.0

    def total(self, losses):
        return losses.sum() + (self.params.factor - 1) * losses[0]
