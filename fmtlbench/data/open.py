"""Open the dataset that stands for a domain, as the config says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..config import DataConfig
from ..errors import FmtlbenchError
from .catalog import dataset_for
from .synth import SynthDataset


def open_split(
    config: DataConfig,
    domain: str,
    split: str,
    data_root: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SynthDataset:
    """The `train` or `test` split of the dataset for `domain`."""
    info = dataset_for(domain, config.source)
    if info.source == "real":
        looked = f" (asked for below {data_root})" if data_root else ""
        raise FmtlbenchError(
            f"dataset {info.name!r}{looked}: this version has no reader for real archives; "
            "the embedded data need none: --preset nano, or --set data.source=synth with a number of samples"
        )
    samples = config.train_samples if split == "train" else config.test_samples
    return SynthDataset(info.name, split, samples[domain], tuple(config.size[domain]), progress=progress)
