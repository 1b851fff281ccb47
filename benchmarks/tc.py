"""What the task-conditioned network saves by running its encoder once: joint ÷ sequential training, and evaluation.

Run: python benchmarks/tc.py      One batch of NYUD's four tasks. Both ways are timed in turns in this process; the
best time of each counts, since other work on the machine only adds time.

The decoder must run once per task either way, so what can be saved is the encoder's share: three quarters of it. With
ResNet-18 that is a tenth of all operations, with Swin-T a quarter, with Swin-S well over a third. The limit is for
Swin-S; all are printed, with the ratio of operations, which nothing can beat by much.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import torch

from fmtlbench.config.run_config import ModelConfig
from fmtlbench.engine.client_models import build_model
from fmtlbench.engine.losses import task_loss
from fmtlbench.networks.complexity import step_flops
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
    """Train on one batch, for each step its tasks' weighted losses, backward, optimiser; return the seconds."""
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


def time_in_turns(one, other, repeat: int) -> tuple[float, float]:
    times = [(one(), other()) for _ in range(repeat + 1)][1:]
    return min(t for t, _ in times), min(t for _, t in times)


def measure(backbone: str, size: tuple[int, int], batch: int, repeat: int) -> float:
    """Print the ratios of training and of evaluation, and that of operations; return the larger of the first two."""
    model = build_model(ModelConfig("tc", backbone, False), size, OUTPUTS, seed=0, everybody=OUTPUTS)
    image, target = torch.randn(batch, 3, *size), labels(batch, size)
    together, apart = [tuple(OUTPUTS)], [(task,) for task in OUTPUTS]
    work = step_flops(model, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    model.train()
    joint, sequential = time_in_turns(
        lambda: train(model, optimizer, image, target, together),
        lambda: train(model, optimizer, image, target, apart),
        repeat,
    )
    model.eval()
    once, each = time_in_turns(lambda: evaluate(model, image, together), lambda: evaluate(model, image, apart), repeat)
    print(
        f"{backbone}: training, joint / sequential {joint:.2f} s / {sequential:.2f} s = {joint / sequential:.3f}; "
        f"evaluation, one encoder pass / one per task {once:.2f} s / {each:.2f} s = {once / each:.3f}; "
        f"operations {work['joint'] / work['sequential']:.3f}",
        flush=True,
    )
    return max(joint / sequential, once / each)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbones", default="resnet18,swin_tiny,swin_base,swin_small", help="the last one is judged")
    parser.add_argument("--size", type=int, nargs=2, default=(224, 288), help="default: 224 288")
    parser.add_argument("--batch", type=int, default=1, help="images; default: 1")
    parser.add_argument("--repeat", type=int, default=5, help="default: 5")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for backbone in args.backbones.split(","):
        ratio = measure(backbone, tuple(args.size), args.batch, args.repeat)
    print(f"{backbone}: {ratio:.3f} at most (limit {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
