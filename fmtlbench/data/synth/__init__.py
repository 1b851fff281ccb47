"""The embedded data: procedural scenes with exact labels, rendered on first use and then read from a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .spec import DOMAINS, SPLITS, VERSION, SynthSpec, focal

if TYPE_CHECKING:
    from .dataset import SynthDataset
    from .sample import generate

__all__ = ["DOMAINS", "SPLITS", "VERSION", "SynthDataset", "SynthSpec", "focal", "generate"]


def __getattr__(name: str):
    # numpy, and numba for rendering, load when first needed: `fmtlbench list` only wants the names
    if name == "generate":
        from .sample import generate

        return generate
    if name == "SynthDataset":
        from .dataset import SynthDataset

        return SynthDataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
