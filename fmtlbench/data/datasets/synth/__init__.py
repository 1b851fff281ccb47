"""The embedded data: procedural scenes with exact labels, rendered on first use and then read from a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._registry import DATASETS
from .dataset import SynthDataset, describe
from .spec import DOMAINS, SPLITS, VERSION, SynthSpec, focal

if TYPE_CHECKING:
    from .sample import generate

__all__ = ["DOMAINS", "SPLITS", "VERSION", "SynthDataset", "SynthSpec", "focal", "generate"]

for _name in DOMAINS:
    DATASETS.add(describe(_name))


def __getattr__(name: str):
    # imported on first use, because it loads numba, which `fmtlbench list` does not need
    if name == "generate":
        from .sample import generate

        return generate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
