"""Reckon how much memory a client's models take, before any of them is made."""

from __future__ import annotations

from ..config.run_config import RunConfig
from ..exchange import Party
from .client_models import build_shapes

# Numbers per parameter that optimisers keep.
MOMENTS = {"adamw": 2, "adam": 2, "sgd": 1}
_counted: dict[tuple[str, tuple[str, ...], int, str], int] = {}


def client_memory(config: RunConfig, party: Party, tracks: int) -> int:
    """Reckon the bytes of a client's models, gradients and optimisers. What a batch takes besides is not in it."""
    kind = (party.dataset, party.tasks, tracks, config.hash())
    if kind not in _counted:
        numbers = sum(parameter.numel() for parameter in build_shapes(config, party).parameters())
        copies = 2 + MOMENTS[config.train.optimizer] + config.train.amsgrad
        _counted[kind] = 4 * numbers * copies * tracks
    return _counted[kind]
