"""What the engine adds to local training: wall time of a client's round ÷ a bare PyTorch loop over the same batches.

Run: python benchmarks/overhead.py      Both are timed in turns in this process; the best round of each counts,
since whatever else the machine does only ever adds time.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import torch

from fmtlbench.config import resolve
from fmtlbench.data.batches import train_batches
from fmtlbench.data.open import open_datasets
from fmtlbench.data.views import client_data
from fmtlbench.engine.client import Client
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation
from fmtlbench.listeners import Listener
from fmtlbench.losses import LOSSES
from fmtlbench.seeds import stream
from fmtlbench.tasks import TASKS

LIMIT = 1.05


def bare_round(model, optimizer, batches, tasks) -> float:
    """What anybody would write: forward, weighted losses, backward, step."""
    began = perf_counter()
    model.train()
    for batch in batches:
        raw = model(batch["image"])
        loss = sum(
            TASKS[task].weight * LOSSES[TASKS[task].loss](raw[task], batch[task], **TASKS[task].loss_options)
            for task in tasks
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return perf_counter() - began


def measure(client: Client, repeat: int) -> float:
    """Engine ÷ bare for one client; the bare loop has its batches ready in memory."""
    train, tasks = client.config.train, client.party.tasks
    order = stream(0, "overhead")
    batches = list(train_batches(client.data.train, tasks, train.batch_size, order, train.augment, client.device))
    model = client.main.model
    optimizer = torch.optim.AdamW(model.parameters(), lr=train.lr, weight_decay=train.weight_decay, fused=True)
    engine, bare = [], []
    for index in range(repeat + 1):
        engine.append(client.train(index, ()).seconds)
        bare.append(bare_round(model, optimizer, batches, tasks))
    ratio = min(engine[1:]) / min(bare[1:])
    print(f"{client.party.id}: engine {min(engine[1:]):.3f} s, bare {min(bare[1:]):.3f} s, ratio {ratio:.3f}")
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=15, help="rounds of each kind per client")
    repeat = parser.parse_args().repeat
    config = resolve("fedhca2", "st_mt_1")
    torch.set_num_threads(config.train.threads)
    datasets = open_datasets(config, None, Listener())
    federation = Federation(ClientFactory(config, "cpu", None, client_data(config, datasets)))
    ratios = [measure(client, repeat) for client in (federation.executor.clients[0], federation.executor.clients[-1])]
    print(f"engine / bare loop: {max(ratios):.3f} at most (limit {LIMIT})")
    return int(max(ratios) > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
