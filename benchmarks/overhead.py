"""What the engine adds to local training: time of a client's round ÷ a bare PyTorch loop over as many batches.

Run: python benchmarks/overhead.py [--rounds N]      The two take turns step by step in this process: after each step of
the engine comes one of the bare loop, so that other work on the machine slows both alike. Processor time is measured.
Every round gives one ratio, and their median is judged. The medians of the even and of the odd rounds show how much
two runs of half the length differ.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from time import process_time

import torch

from fmtlbench.base.seeds import stream
from fmtlbench.config.resolve import resolve
from fmtlbench.data.batches import train_batches
from fmtlbench.data.open import open_datasets
from fmtlbench.data.views import client_data
from fmtlbench.engine.client import Client
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation
from fmtlbench.engine.losses import LOSSES
from fmtlbench.listeners import Listener
from fmtlbench.tasks import TASKS

LIMIT = 1.05


def bare_step(model, optimizer, batch, tasks) -> None:
    """Do one training step in plain PyTorch: forward, weighted losses, backward, optimiser."""
    raw = model(batch["image"])
    loss = sum(
        TASKS[task].weight * LOSSES[TASKS[task].loss](raw[task], batch[task], **TASKS[task].loss_options)
        for task in tasks
    )
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def measure(client: Client, rounds: int) -> float:
    """Return engine ÷ bare for one client; the bare loop has its batches ready in memory."""
    train, tasks = client.config.train, client.party.tasks
    order = stream(0, "overhead")
    batches = list(train_batches(client.data.train, tasks, train.batch_size, order, train.augment, client.device))
    model = copy.deepcopy(client.main.model).train()  # its own, since the engine goes on with gradients of its model
    optimizer = torch.optim.AdamW(model.parameters(), lr=train.lr, weight_decay=train.weight_decay, fused=True)
    times = []  # (engine, bare) by round
    for index in range(rounds + 1):
        waiting, steps = iter(batches), []

        def take_turn(*_, waiting=waiting, steps=steps) -> None:
            began = process_time()
            bare_step(model, optimizer, next(waiting), tasks)
            steps.append(process_time() - began)

        began = process_time()
        client.train(index, (), take_turn)
        whole, bare = process_time() - began, sum(steps)
        assert len(steps) == len(batches)
        times.append((whole - bare, bare))
    engine, bare = zip(*times[1:])  # the first round warms up
    ratios = [a / b for a, b in zip(engine, bare)]
    low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
    even, odd = statistics.median(ratios[::2]), statistics.median(ratios[1::2])
    print(
        f"{client.party.id}: engine {statistics.median(engine):.3f} s, bare {statistics.median(bare):.3f} s, ratio "
        f"{ratio:.3f} (quartiles {low:.3f} and {high:.3f}; even rounds {even:.3f}, odd {odd:.3f}; {rounds} rounds)"
    )
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="per client, at least 4")
    rounds = max(4, parser.parse_args().rounds)
    config = resolve("fedhca2", "st_mt_1")
    torch.set_num_threads(config.train.threads)
    datasets = open_datasets(config, None, Listener())
    federation = Federation(ClientFactory(config, "cpu", None, client_data(config, datasets)))
    ratios = [measure(client, rounds) for client in (federation.executor.clients[0], federation.executor.clients[-1])]
    print(f"engine / bare loop: {max(ratios):.3f} at most (limit {LIMIT})")
    return int(max(ratios) > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
