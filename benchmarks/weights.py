"""What a finished run takes on disk ÷ what it takes with its checkpoints, and how far 8-bit weights move its scores.

Run: python benchmarks/weights.py [--rounds N]      A short nano run of FedHCA² on st_mt_1, six networks that share
nothing, with fewer images than the preset has: its networks have their full size. The size of the folder is judged; the
change of the scores is printed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

import fmtlbench
from fmtlbench.base.words import say_bytes
from fmtlbench.data.configured_tasks import task_specs
from fmtlbench.engine.change_kept import change_kept
from fmtlbench.engine.evaluate import evaluate
from fmtlbench.engine.process_settings import process_settings
from fmtlbench.inference.stored_run import StoredRun
from fmtlbench.listeners import Listener
from fmtlbench.runs.kept import size_on_disk

LIMIT = 5_000_000  # bytes
FEWER = {"data.train_samples": {"pascal": 300, "nyud": 120}, "data.test_samples": {"pascal": 100, "nyud": 100}}
CPU = torch.device("cpu")


def score(folder: Path) -> dict[tuple[str, str, str, str], float]:
    """Return the primary scores of the networks that a run keeps, by client, split, task and metric."""
    run = StoredRun(folder)
    run.open(None, CPU, Listener())
    found = {}
    for party in run.members:
        info, specs = run.config.data.dataset(party.dataset), task_specs(run.config, party.dataset)
        with process_settings(run.config.train, CPU), run.network(party) as model:
            batch = run.config.evaluation.batch_size
            for record in evaluate(model, party, run.data[party.index], info, specs, batch, CPU):
                if record["primary"] and record["value"] is not None:
                    found[record["client"], record["split"], record["task"], record["metric"]] = record["value"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = {"rounds": args.rounds, "out": folder, "device": "cpu", "keep": "last", "energy": False}
        run = fmtlbench.run("fedhca2", "st_mt_1", **given, **FEWER).folder
        whole = size_on_disk(run)
        both = whole + size_on_disk(run / "checkpoint")  # a run at work has two checkpoints
        scores = {}
        for keep in ("exact", "weights"):
            change_kept(run, keep, None, CPU, Listener())
            scores[keep] = score(run)
            size = size_on_disk(run)
            print(f"{keep:8} {say_bytes(size):>8}: {size / both:.3f} of two checkpoints, {size / whole:.3f} of one")
    changes = {key: abs(scores["weights"][key] - value) / abs(value) for key, value in scores["exact"].items() if value}
    worst = max(changes, key=changes.__getitem__)
    print(f"8-bit weights move scores by at most {changes[worst]:.2%} ({', '.join(worst)})")
    print(f"median over {len(changes)} scores: {sorted(changes.values())[len(changes) // 2]:.3%}")
    print(f"a finished run: {say_bytes(size)}, at most {say_bytes(LIMIT)}: {'ok' if size <= LIMIT else 'TOO MUCH'}")
    return 0 if size <= LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
