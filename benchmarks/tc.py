"""What the task-conditioned network saves by running its encoder once: joint ÷ sequential training, and evaluation.

Run: python benchmarks/tc.py      One batch of NYUD's four tasks. Both ways are timed in turns in this process; the
best time of each counts, since whatever else the machine does only ever adds time.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import torch

from fmtlbench.config import ModelConfig
from fmtlbench.losses import task_loss
from fmtlbench.models.build import build_model
from fmtlbench.models.complexity import flops
from fmtlbench.tasks import TASKS

OUTPUTS = {"semseg": 40, "depth": 1, "normals": 3, "edge": 1}
LIMIT = 0.6


def labels(batch: int, size: tuple[int, int]) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    normals = torch.randn(batch, 3, *size, generator=generator)
    return {
        "semseg": torch.randint(0, 40, (batch, *size), generator=generator),
        "depth": 1 + torch.rand(batch, *size, generator=generator),
        "normals": normals / normals.norm(dim=1, keepdim=True),
        "edge": torch.randint(0, 2, (batch, *size), generator=generator),
    }


def train(model, optimizer, image, target, steps) -> float:
    """One batch: for each step its tasks' weighted losses, backward, optimiser."""
    began = perf_counter()
    for tasks in steps:
        raw = model(image, tasks)
        loss = sum(TASKS[task].weight * task_loss(TASKS[task], raw[task], target[task]) for task in tasks)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    return perf_counter() - began


@torch.no_grad()
def evaluate(model, image, passes) -> float:
    began = perf_counter()
    for tasks in passes:
        model(image, tasks)
    return perf_counter() - began


def turns(one, other, repeat: int) -> tuple[float, float]:
    times = [(one(), other()) for _ in range(repeat + 1)][1:]
    return min(t for t, _ in times), min(t for _, t in times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="swin_tiny", help="default: swin_tiny")
    parser.add_argument("--size", type=int, nargs=2, default=(224, 288), help="default: 224 288")
    parser.add_argument("--batch", type=int, default=2, help="images; default: 2")
    parser.add_argument("--repeat", type=int, default=5, help="default: 5")
    args = parser.parse_args()
    torch.set_num_threads(1)
    size = tuple(args.size)
    model = build_model(ModelConfig("tc", args.backbone, False), size, OUTPUTS, seed=0, everybody=OUTPUTS)
    image, target = torch.randn(args.batch, 3, *size), labels(args.batch, size)
    together, apart = [tuple(OUTPUTS)], [(task,) for task in OUTPUTS]
    for name, count in (("joint", flops(model, size)), ("sequential", 4 * flops(model, size, ("depth",)))):
        print(f"{name}: {count / 1e9:.2f} GFLOPs forward per image")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    model.train()
    joint, sequential = turns(
        lambda: train(model, optimizer, image, target, together),
        lambda: train(model, optimizer, image, target, apart),
        args.repeat,
    )
    model.eval()
    once, each = turns(lambda: evaluate(model, image, together), lambda: evaluate(model, image, apart), args.repeat)
    print(f"training, joint {joint:.3f} s / sequential {sequential:.3f} s: {joint / sequential:.3f} (limit {LIMIT})")
    print(f"evaluation, one pass {once:.3f} s / one per task {each:.3f} s: {once / each:.3f} (limit {LIMIT})")
    return int(max(joint / sequential, once / each) > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
