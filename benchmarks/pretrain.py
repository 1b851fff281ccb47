"""What encoder weights cost: `fmtlbench pretrain` ÷ one nano run of `local` on st_mt_1, both with their data ready.

Run: python benchmarks/pretrain.py      Both are timed in turns in this process, each on a fraction of its steps and
scaled to all of them; the best turn of each counts, since other work on the machine only adds time. Rendering the
scenes is timed on a fraction too and counted with the pretraining; rendering the run's own few images is not.
"""

from __future__ import annotations

import argparse
import dataclasses
from time import perf_counter

import torch

from fmtlbench.config.resolve import resolve
from fmtlbench.data.datasets.synth import DOMAINS, generate
from fmtlbench.data.open import open_datasets
from fmtlbench.data.views import client_data
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation
from fmtlbench.listeners import Listener
from fmtlbench.pretrain import Plan, new_track, open_scenes, train_step

LIMIT = 3.0
FRACTION_SCENES = 400  # what the fraction of the steps draws from; a step takes as long whatever their number


def time_rendering(plan: Plan, count: int) -> float:
    """Return the seconds that rendering all scenes of a plan takes, scaled from `count` of each domain."""
    for name in DOMAINS:
        generate(name, "pretrain", 0, plan.size)  # compiles
    began = perf_counter()
    for name in DOMAINS:
        for index in range(count):
            generate(name, "pretrain", index, plan.size)
    return (perf_counter() - began) * plan.scenes / (count * len(DOMAINS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", help="default: the preset's")
    parser.add_argument("--steps", type=int, default=15, help="of the pretraining in a turn; default: 15")
    parser.add_argument("--repeat", type=int, default=4, help="turns; default: 4")
    args = parser.parse_args()
    config = resolve("local", "st_mt_1")
    plan = Plan(args.backbone or config.model.backbone)
    torch.set_num_threads(1)
    scenes = open_scenes(dataclasses.replace(plan, scenes=FRACTION_SCENES), Listener())
    track = new_track(plan, scenes)
    federation = Federation(
        ClientFactory(config, "cpu", None, client_data(config, open_datasets(config, None, Listener())))
    )
    render, steps, rounds, scoring = [], [], [], []
    for turn in range(args.repeat + 1):
        render.append(time_rendering(plan, 50))
        began = perf_counter()
        for step in range(args.steps):
            train_step(plan, track, scenes, step)
        steps.append((perf_counter() - began) * plan.steps / args.steps)
        began = perf_counter()
        federation.train(turn, lambda *_: None)
        rounds.append((perf_counter() - began) * config.federation.rounds)
        began = perf_counter()
        for client in federation.executor.clients:
            client.evaluate(turn)
        scoring.append((perf_counter() - began) * config.federation.rounds / config.evaluation.every)
    made = min(render[1:]) + min(steps[1:])
    run = min(rounds[1:]) + min(scoring[1:])
    print(
        f"{plan.backbone}: rendering {plan.scenes} scenes {min(render[1:]):.0f} s (scaled from 100), "
        f"{plan.steps} steps {min(steps[1:]):.0f} s (scaled from {args.steps}); local on st_mt_1: "
        f"{config.federation.rounds} rounds {min(rounds[1:]):.0f} s (scaled from 1), scoring {min(scoring[1:]):.0f} s "
        "(scaled from 1)"
    )
    print(f"pretraining / one nano run: {made / run:.2f} (limit {LIMIT})")
    return int(made / run > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
