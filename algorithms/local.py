"""Local training: nobody shares anything. The baseline that Δm is measured against."""

from __future__ import annotations

from ._base import ALGORITHMS, Algorithm


@ALGORITHMS.register("local")
class LocalTraining(Algorithm):
    """Every client trains alone."""

    title = "Local"
    paper = "baseline of every paper"
    roles = ()

    @classmethod
    def refuses(cls, params, scenario, federation):
        if federation.participation < 1:
            return "nobody takes part in anything, so federation.participation has no meaning"
