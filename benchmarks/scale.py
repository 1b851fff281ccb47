"""Scaling, as ratios measured in one run: Ray against serial, growth with the number of clients, bytes that are sent.

Run: python benchmarks/scale.py [--only speed growth large] [--clients 2 4 8 16 32 64]

speed   Rounds of the nano setting with clients that work equally long: serial ÷ two processes (at least 1.6 on two
        cores) and one process ÷ serial (at most 1.15), by the wall clock, taking turns; and the bytes that go through
        the object store in a round ÷ those that the ledger books (at most 1.1).
growth  A round of FedAvg with more and more nano clients, serial: seconds, with the exponent of the fitted growth, and
        the memory the server takes for it (at most 2.2 × N·d·4 bytes with the most clients; with few, what a batch
        takes is more than that).
large   64 nano clients, and 24 of Swin-T size on small images with models parked in files: one round within 24 GiB,
        serial and with two processes of Ray.

Wall time on a machine that does other work says little: run it on a quiet one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

LEAST_SPEEDUP, MOST_OVERHEAD, MOST_BYTES, MOST_MEMORY, MOST_GROWTH = 1.6, 1.15, 1.1, 2.2, 1.15
GIB = 1 << 30
SCENARIO = """\
description: clients that all do the same
paper: none
version: 1
clients:
  - {{dataset: nyud, tasks: [depth, normals], count: {count}}}
"""


def write_scenario(folder: Path, count: int) -> str:
    """Write a scenario of alike clients; return its path."""
    file = folder / f"alike_{count}.yml"
    file.write_text(SCENARIO.format(count=count))
    return str(file)


def make_federation(scenario: str, overrides: dict[str, Any], workers: int | None = None) -> Any:
    """Make a federation; with `workers`, its clients live in so many processes of Ray."""
    from fmtlbench.config.ray_options import RayOptions
    from fmtlbench.config.resolve import resolve
    from fmtlbench.cost.energy import EnergyChoice
    from fmtlbench.engine.executor import SerialExecutor
    from fmtlbench.engine.factory import ClientFactory
    from fmtlbench.engine.federation import Federation

    config = resolve("fedavg", scenario, overrides=overrides)
    if workers is None:
        return Federation(ClientFactory(config, "cpu"), SerialExecutor())
    from fmtlbench.engine.ray.executor import RayExecutor

    executor = RayExecutor(RayOptions(workers=workers, cpus_per_client=0.1), None, EnergyChoice(off="a benchmark"))
    return Federation(ClientFactory(config, "cpu"), executor)


def verdict(name: str, value: float, good: bool, limit: str, detail: str = "") -> bool:
    """Print a figure with its limit; return whether it is within the limit."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}: {value:.3f} ({limit})  {detail}", flush=True)
    return good


# -- speed -------------------------------------------------------------------------------------------------------------


def measure_speed(folder: Path, rounds: int) -> bool:
    """Compare serial rounds with those of one and of two processes, which take turns."""
    import torch

    torch.set_num_threads(1)
    scenario = write_scenario(folder, 4)
    overrides = {"data.train_samples.nyud": 1600, "data.test_samples.nyud": 20, "federation.rounds": 10_000}
    ways = {"serial": None, "one process": 1, "two processes": 2}
    times: dict[str, list[float]] = {name: [] for name in ways}
    shares = []
    federations = {name: make_federation(scenario, overrides, workers) for name, workers in ways.items()}
    try:
        for index in range(rounds + 1):  # the first one warms up
            for name, federation in federations.items():
                before = getattr(federation.executor, "carried", 0)
                began = time.perf_counter()
                row = federation.round(index)
                if index:
                    times[name].append(time.perf_counter() - began)
                    if name == "two processes":
                        carried = federation.executor.carried - before
                        shares.append(carried / (row["bytes_up"] + row["bytes_down"]))
    finally:
        for federation in reversed(federations.values()):
            federation.__exit__()
    seconds = {name: statistics.median(taken) for name, taken in times.items()}
    detail = ", ".join(f"{name} {taken:.2f} s" for name, taken in seconds.items())
    speedup, overhead = seconds["serial"] / seconds["two processes"], seconds["one process"] / seconds["serial"]
    verdicts = [
        verdict("serial ÷ two processes", speedup, speedup >= LEAST_SPEEDUP, f"≥ {LEAST_SPEEDUP}", detail),
        verdict("one process ÷ serial", overhead, overhead <= MOST_OVERHEAD, f"≤ {MOST_OVERHEAD}"),
        verdict("object store ÷ ledger, bytes", max(shares), max(shares) <= MOST_BYTES, f"≤ {MOST_BYTES}"),
    ]
    return all(verdicts)


# -- growth ------------------------------------------------------------------------------------------------------------


def measure_round(folder: str, count: int) -> tuple[float, int, int]:
    """Return (seconds of a round, bytes that its server part took at most, N·d·4 bytes)."""
    import torch

    torch.set_num_threads(1)
    overrides = {"data.train_samples.nyud": 16 * count, "data.test_samples.nyud": 20, "federation.rounds": 3}
    federation = make_federation(write_scenario(Path(folder), count), overrides)
    federation.round(0)  # lazy initialisation, optimisers
    sizes = {kind: federation.facts[0].layouts[kind] for kind in ("encoder", "decoder")}
    sent = 4 * count * sum(len(layout.owners) * layout.width for layout in sizes.values())
    began = time.perf_counter()
    with Watched() as watched:
        federation.round(1)
    return time.perf_counter() - began, watched.peak, sent


class Watched:
    """Watch how much this process grows beyond its size at the start, from another thread."""

    def __enter__(self) -> Watched:
        import threading

        self.process, self.going = psutil.Process(), True
        self.start = self.most = self.process.memory_info().rss
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()
        return self

    def _look(self) -> None:
        while self.going:
            self.most = max(self.most, self.process.memory_info().rss)
            time.sleep(0.002)

    def __exit__(self, *_: object) -> None:
        self.going = False
        self.thread.join()
        self.peak = max(self.most, self.process.memory_info().rss) - self.start


def measure_growth(folder: Path, counts: list[int]) -> bool:
    """Print a round's time and memory for growing federations, each in a process of its own, and how time grows."""
    context = multiprocessing.get_context("spawn")
    seconds, shares = [], []
    for count in counts:
        with context.Pool(1) as pool:
            taken, grown, sent = pool.apply(measure_round, (str(folder), count))
        seconds.append(taken)
        shares.append(grown / sent)
        print(
            f"      {count:3d} clients: {taken:6.2f} s, server {grown / 1e6:7.1f} MB = {grown / sent:.2f} × N·d·4 bytes"
        )
    exponent = np.polyfit(np.log(counts), np.log(seconds), 1)[0]
    verdicts = [
        verdict("time grows as N to the power", exponent, exponent <= MOST_GROWTH, f"≤ {MOST_GROWTH}; 1 is linear"),
        verdict("server memory ÷ N·d·4 bytes", shares[-1], shares[-1] <= MOST_MEMORY, f"≤ {MOST_MEMORY}"),
    ]
    return all(verdicts)


# -- large -------------------------------------------------------------------------------------------------------------

FEW_IMAGES = {"train.batch_size": 2, "data.test_samples.nyud": 2, "federation.rounds": 2}
SWIN_T = {"model.backbone": "swin_tiny", "model.pretrained": False, "model.init": "torch", "federation.park": "disk"}
LARGE = {"nano": (64, FEW_IMAGES), "Swin-T": (24, FEW_IMAGES | SWIN_T)}


def measure_large_round(folder: str, kind: str, workers: int | None) -> tuple[float, int]:
    """Return (seconds of a round, the most memory that this process and its descendants had at once)."""
    import threading

    import torch

    torch.set_num_threads(1)
    count, options = LARGE[kind]
    overrides = {**options, "data.train_samples.nyud": 2 * count}
    most, going = 0, True

    def look() -> None:
        nonlocal most
        me = psutil.Process()
        while going:
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:  # ended meanwhile
                    continue
            most = max(most, total)
            time.sleep(0.2)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    with make_federation(write_scenario(Path(folder), count), overrides, workers) as federation:
        began = time.perf_counter()
        federation.round(0)
        taken = time.perf_counter() - began
    going = False
    thread.join()
    return taken, most


def measure_large(folder: Path) -> bool:
    """Check that a round of many clients fits into memory, serially and with two processes.

    Memory that processes share is counted once for each of them.
    """
    context = multiprocessing.get_context("spawn")
    verdicts = []
    for kind, (count, _) in LARGE.items():
        for name, workers in (("serial", None), ("Ray, two processes", 2)):
            with context.Pool(1) as pool:
                taken, most = pool.apply(measure_large_round, (str(folder), kind, workers))
            title, detail = f"{count} {kind} clients, {name}, GiB", f"a round in {taken:.0f} s"
            verdicts.append(verdict(title, most / GIB, most <= 24 * GIB, "≤ 24", detail))
    return all(verdicts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=("speed", "growth", "large"), default=["speed", "growth", "large"])
    parser.add_argument("--clients", nargs="+", type=int, default=[2, 4, 8, 16, 32, 64])
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds of `speed` (default: 7)")
    arguments = parser.parse_args()
    verdicts = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "speed" in arguments.only:
            verdicts.append(measure_speed(folder, arguments.rounds))
        if "growth" in arguments.only:
            verdicts.append(measure_growth(folder, arguments.clients))
        if "large" in arguments.only:
            verdicts.append(measure_large(folder))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
