"""What the embedded data cost: rendering them against training one nano run, and loading them against rendering them.

Run: python benchmarks/data.py      Training is measured over a few rounds and scaled to the preset's number.
"""

from __future__ import annotations

import tempfile
from time import perf_counter

import numpy as np
import torch

from fmtlbench.config.resolve import resolve
from fmtlbench.config.run_config import RunConfig
from fmtlbench.data.datasets.synth import SynthDataset, generate
from fmtlbench.data.views import client_data
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation

LOAD_LIMIT, TRAIN_LIMIT = 0.05, 0.2
MEASURED_ROUNDS = 3


def read_all(data: SynthDataset) -> None:
    """Copy every array out of the cache, as training over the whole dataset would."""
    for key in data.keys:
        np.array(data.arrays(key))


def open_all(config: RunConfig, folder: str) -> dict[tuple[str, str], SynthDataset]:
    """Open the four splits of a nano run; render those that `folder` does not hold."""
    lengths = {"train": config.data.train_samples, "test": config.data.test_samples}
    return {
        (domain, split): SynthDataset(f"synth-{domain}", split, counts[domain], config.data.size[domain], folder)
        for split, counts in lengths.items()
        for domain in sorted(counts)
    }


def training_seconds(config: RunConfig, datasets: dict) -> float:
    """Return the seconds of a run's local training, scaled from a few rounds that are measured after a first one."""
    torch.set_num_threads(config.train.threads)
    federation = Federation(ClientFactory(config, "cpu", None, client_data(config, datasets)))
    federation.round(0)
    federation.timing()
    spent = 0.0
    for index in range(1, 1 + MEASURED_ROUNDS):
        federation.round(index)
        seconds = federation.timing()["busy"]
        spent += seconds["load"] + seconds["step"]
    return spent / MEASURED_ROUNDS * config.federation.rounds


def main() -> int:
    config = resolve("fedhca2", "st_mt_1")
    began = perf_counter()
    generate("synth-pascal", "train", 0, (64, 64))
    print(f"first sample, imports and compilation included: {perf_counter() - began:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        datasets = open_all(config, folder)
        rendering = perf_counter() - began
        began = perf_counter()
        for data in open_all(config, folder).values():
            read_all(data)
        loading = perf_counter() - began
        training = training_seconds(config, datasets)
    samples = sum(len(data) for data in datasets.values())
    print(f"render {samples} samples {rendering:.1f} s, load them {loading:.3f} s, train a nano run {training:.0f} s")
    print(f"load / render:  {loading / rendering:.4f} (limit {LOAD_LIMIT})")
    print(f"render / train: {rendering / training:.4f} (limit {TRAIN_LIMIT})")
    return int(loading / rendering > LOAD_LIMIT or rendering / training > TRAIN_LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
