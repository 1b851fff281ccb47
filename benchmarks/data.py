"""How long the embedded data take to render, and what loading them from the cache costs instead.

Run: python benchmarks/data.py      Prints a load/generate ratio; it should stay at or below 0.05.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from fmtlbench.data.synth import SynthDataset, generate

# name, split, length: what a run of the nano preset needs
NANO = (
    ("synth-pascal", "train", 1000),
    ("synth-pascal", "test", 120),
    ("synth-nyud", "train", 200),
    ("synth-nyud", "test", 120),
)
LIMIT = 0.05


def read_all(data: SynthDataset) -> int:
    """Copy every array out of the cache, as training over the whole dataset would; the number of bytes."""
    return sum(np.array(data.arrays(key)).nbytes for key in data.keys)


def generation(datasets: Sequence[tuple[str, str, int]] = NANO, size: tuple[int, int] = (64, 64)) -> float:
    """Time rendering into an empty cache and loading from it; returns load / generate."""
    start = perf_counter()
    generate(datasets[0][0], "train", 0, size)
    compiling = perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        rendering = loading = 0.0
        for name, split, length in datasets:
            start = perf_counter()
            SynthDataset(name, split, length, size, cache_dir=folder)
            spent = perf_counter() - start
            rendering += spent
            start = perf_counter()
            count = read_all(SynthDataset(name, split, length, size, cache_dir=folder))
            loaded = perf_counter() - start
            loading += loaded
            print(
                f"{name} {split} {length} at {size[0]}x{size[1]}: {1000 * spent / length:.2f} ms per sample to render, "
                f"{loaded:.3f} s to load {count / 1e6:.0f} MB"
            )
    ratio = loading / rendering
    print(
        f"first sample, imports and compilation included: {compiling:.1f} s; "
        f"generate {rendering:.2f} s; load {loading:.3f} s"
    )
    print(f"load/generate ratio: {ratio:.4f} (limit {LIMIT})")
    return ratio


if __name__ == "__main__":
    raise SystemExit(generation() > LIMIT)
