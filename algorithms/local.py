"""Local training: nobody shares anything. The baseline that Δm is measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import ALGORITHMS, Algorithm

if TYPE_CHECKING:
    from ..config.run_config import FederationConfig
    from ..scenarios import Scenario


@ALGORITHMS.register("local")
class LocalTraining(Algorithm):
    """Every client trains alone."""

    title = "Local"
    paper = "baseline of every paper"
    roles = ()

    @classmethod
    def refuses(cls, params: Any, scenario: Scenario, federation: FederationConfig) -> str | None:
        if federation.participation < 1:
            return "nobody takes part in anything, so federation.participation has no meaning"
        return None
