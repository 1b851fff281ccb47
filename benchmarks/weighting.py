"""What a weighting of a client's losses costs: time of its training step ÷ that of `equal`, with four tasks.

Run: python benchmarks/weighting.py      One client per weighting, in this process; rounds of a few steps are made in
turns. Processor time on one thread is what is compared, and the best of each counts, since other work on the machine
only adds to it.

Beside it stands what the weighting needs by definition, beyond a step's one pass forward and one back: passes back
through the encoder (decoders and heads are differentiated once, whatever the weighting), and passes forward. A pass
back through the encoder alone is timed too, so that the last column says what the ratio would be if nothing but these
passes were paid for. The limit is for weightings that need none.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from time import process_time
from typing import Any

LIMIT = 1.1
FEW = {"pascal": 64, "nyud": 64}  # images: a round is then short enough that some are left alone by other processes
TASKS = 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=10, help="rounds of each; default: 10")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="these weightings; default: all")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another setting than nano's")
    args = parser.parse_args()
    return measure(args.repeat, [name for name in args.only.split(",") if name], args.set)


def measure(repeat: int, names: list[str], assignments: list[str]) -> int:
    import torch

    from fmtlbench.config.resolve import parse_overrides, resolve
    from fmtlbench.data.open import open_datasets
    from fmtlbench.data.views import client_data
    from fmtlbench.engine.factory import ClientFactory
    from fmtlbench.engine.process_settings import process_settings
    from fmtlbench.listeners import Listener
    from fmtlbench.weightings import WEIGHTINGS

    given = {"data.train_samples": FEW, "train.threads": 1, **parse_overrides(assignments)}
    plain = resolve("local", "st_mt_1", overrides=given)
    data = client_data(plain, open_datasets(plain, None, Listener()))
    last = len(data) - 1  # the client with the most tasks
    clients = {}
    for name in ["equal", *(n for n in names or WEIGHTINGS if n != "equal")]:
        config = replace(plain, train=replace(plain.train, weighting=WEIGHTINGS[name].name))
        clients[name] = ClientFactory(config, "cpu", None, data).make(last)
    tasks = clients["equal"].party.tasks
    assert len(tasks) == TASKS, f"a client with {TASKS} tasks is expected, this one has {', '.join(tasks)}"
    seconds: dict[str, list[float]] = {name: [] for name in clients}
    forward, back = [], []
    with process_settings(plain.train, torch.device("cpu")):
        for index in range(repeat + 1):
            for name, client in clients.items():
                began = process_time()
                client.train(index % plain.federation.rounds, ())
                seconds[name].append((process_time() - began) / client.steps_per_round)
            for times, spent in zip((forward, back), time_passes(clients["equal"])):
                times.append(spent)
    best = {name: min(times[1:]) for name, times in seconds.items()}  # the first round warms up
    return report(best, min(forward[1:]), min(back[1:]))


def time_passes(client: Any) -> tuple[float, float]:
    """Return the seconds of a pass forward without gradients, and of one back through the encoder alone."""
    import torch

    track, config = client.main, client.config
    image = torch.randn(config.train.batch_size, 3, *config.data.size[client.party.dataset])
    track.model.train()
    with torch.no_grad():
        began = process_time()
        track.network(image, client.party.tasks)
        forward = process_time() - began
    features = track.model.encoder(image)
    total = sum(feature.sum() for feature in (features if isinstance(features, (list, tuple)) else [features]))
    began = process_time()
    total.backward()
    return forward, process_time() - began


def report(best: dict[str, float], forward: float, back: float) -> int:
    """Print the table; return 1 if a weighting that needs no further pass is over the limit."""
    from fmtlbench.weightings import WEIGHTINGS

    base = best["equal"]
    print(
        f"equal: {1000 * base:.1f} ms a step; of the passes beyond it, one forward takes {1000 * forward:.1f} ms, one "
        f"back through the encoder {1000 * back:.1f} ms"
    )
    print(f"{'weighting':<12}{'step ÷ equal':>14}{'more back':>12}{'more forward':>14}{'passes alone':>14}")
    over = []
    for name, seconds in best.items():
        kind = WEIGHTINGS[name]
        more_back, more_forward = (TASKS - 1) * kind.needs_gradients, int(kind.needs_losses_again)
        ratio, least = seconds / base, 1 + (more_back * back + more_forward * forward) / base
        print(f"{name:<12}{ratio:>14.3f}{more_back:>12}{more_forward:>14}{least:>14.3f}")
        if not more_back and not more_forward and ratio > LIMIT:
            over.append(name)
    print(f"without further passes: {'over' if over else 'within'} the limit of {LIMIT}", *over)
    return int(bool(over))


if __name__ == "__main__":
    raise SystemExit(main())
