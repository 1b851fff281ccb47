"""What train.compile brings: a compiled training step ÷ an eager one, both in this process; compile seconds beside it.

Run: python benchmarks/compile.py      Rounds of a few steps of both kinds are made in turns; processor time on one
thread is what is compared, and the best of each counts, since other work on the machine only adds to it.
Compiling starts from an empty cache, unless $TORCHINDUCTOR_CACHE_DIR names one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import replace
from time import perf_counter, process_time

LIMIT = 1.1
FEW = {"pascal": 64, "nyud": 64}  # images: a round is then short enough that some are left alone by other processes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=40, help="rounds of each kind")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another setting than nano's")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", cache)  # before torch is imported
        return measure(args.repeat, args.set)


def measure(repeat: int, assignments: list[str]) -> int:
    import torch

    from fmtlbench.config.resolve import parse_overrides, resolve
    from fmtlbench.data.open import open_datasets
    from fmtlbench.data.views import client_data
    from fmtlbench.engine.factory import ClientFactory
    from fmtlbench.engine.process_settings import process_settings
    from fmtlbench.engine.torch_compile import check_compile
    from fmtlbench.listeners import Listener

    eager = resolve("local", "st_mt_1", overrides={"data.train_samples": FEW, **parse_overrides(assignments)})
    data = client_data(eager, open_datasets(eager, None, Listener()))
    configs = {"eager": eager, "compiled": replace(eager, train=replace(eager.train, compile=True))}
    began = perf_counter()
    check_compile(True, torch.device("cpu"))
    print(f"the compiler's own start: {perf_counter() - began:.1f} s")
    last = len(data) - 1  # the client with the most tasks
    clients = {kind: ClientFactory(config, "cpu", None, data).make(last) for kind, config in configs.items()}
    seconds: dict[str, list[float]] = {kind: [] for kind in clients}
    with process_settings(configs["compiled"].train, torch.device("cpu")):
        for index in range(repeat + 1):
            for kind, client in clients.items():
                began = process_time()
                client.train(index, ())
                spent = (process_time() - began) / client.steps_per_round
                times = client.times()
                if index:
                    seconds[kind].append(spent)
                else:
                    print(f"{kind}: {times['warmup']:.1f} s in the first step")
    best = {kind: min(values) for kind, values in seconds.items()}
    ratio = best["compiled"] / best["eager"]
    print(", ".join(f"{kind} step {1000 * value:.1f} ms" for kind, value in best.items()))
    print(f"compiled / eager: {ratio:.3f} (limit {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
