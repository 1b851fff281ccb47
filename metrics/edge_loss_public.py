"""The edge loss as the public meters report it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import METRICS
from .edge_loss import EdgeLoss

if TYPE_CHECKING:
    import torch


@METRICS.register("edge_loss_public")
class EdgeLossPublic(EdgeLoss):
    """`edge_loss` with the sigmoid applied twice: the public meters hand probabilities to a loss that expects logits.

    It takes logits too, so that both metrics can score the same output.
    """

    label = "edge_loss_public"
    description = "edge_loss as in the public meters, with the sigmoid applied twice"

    def _logits(self, prediction: torch.Tensor) -> torch.Tensor:
        return prediction.sigmoid()
