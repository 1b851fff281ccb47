"""What accounting adds to a run: wall time with energy tracking and all records ÷ without energy, same process.

Run: python benchmarks/cost.py      Runs with and without take turns; the best of each counts, since other work on the
machine only adds time. Importing codecarbon and finding the sensors, once per process and while the data are opened, is
printed separately.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

import fmtlbench

LIMIT = 1.03


def timed(energy: bool, rounds: int, out: Path) -> float:
    began = perf_counter()
    result = fmtlbench.run(
        "fedhca2",
        "st_mt_1",
        rounds=rounds,
        out=out,
        fresh=True,
        energy=energy,
        device="cpu",
        **{"evaluation.every": rounds, "checkpoint_every": rounds},
    )
    assert not result.reused
    return perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=7, help="runs of each kind")
    parser.add_argument("--rounds", type=int, default=2, help="per run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        print(f"first run without energy: {timed(False, args.rounds, out):.2f} s, imports and data included")
        print(f"first run with energy:    {timed(True, args.rounds, out):.2f} s, tracker's start included")
        on, off = [], []
        for _ in range(args.repeat):
            off.append(timed(False, args.rounds, out))
            on.append(timed(True, args.rounds, out))
            print(f"off {off[-1]:.3f} s, on {on[-1]:.3f} s", flush=True)
    ratio = min(on) / min(off)
    print(f"with / without: {ratio:.3f} (limit {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
