"""Whole run folders for figures: scores over rounds, costs, diagnostics and updates of the test's choosing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from made_runs import DUO, TITLES, summary, write_run

NINE = ("local", "fedavg", "fedprox", "fedper", "fedrep", "ditto", "fedamp", "matfl", "fedhca2")
TASKS = {"pascal": ("semseg", "human_parts", "sal", "normals", "edge"), "nyud": ("semseg", "depth", "normals", "edge")}
# Two clients for each of the nine (dataset, task) of MaT-FL's setting.
EIGHTEEN = {f"{d}-{t}-{i}": (d, (t,)) for d, tasks in TASKS.items() for t in tasks for i in (1, 2)}


def finals(algorithm: str, seed: int, clients: Mapping = DUO, spread: float = 1.0) -> dict[tuple[str, str], float]:
    """A plausible last score per (client, task): the method decides most of it, client and seed the rest."""
    gain = 0.006 * (NINE.index(algorithm) if algorithm in NINE else 0) - 0.02 * (algorithm != "local")
    rng = np.random.default_rng([seed, NINE.index(algorithm) if algorithm in NINE else 99])
    out = {}
    for client, (_, tasks) in clients.items():
        for task in tasks:
            start, sign = {"depth": (0.6, -1), "normals": (25.0, -1)}.get(task, (50.0, 1))
            out[client, task] = start * (1 + sign * (gain + spread * 0.02 * rng.normal()))
    return out


def curves(made: Mapping[str, Any], rounds: int, every: int) -> list[dict[str, Any]]:
    """metrics.jsonl rows whose scores approach the summary's."""
    rows = []
    for r in range(1, rounds + 1):
        row: dict[str, Any] = {"round": r, "losses": {}, "bytes_up": 5 * 10**7, "bytes_down": 5 * 10**7}
        if r % every == 0 or r == rounds:
            left = np.exp(-4 * r / rounds) - np.exp(-4)
            row["scores"] = [
                {**s, "value": s["value"] * (1 - 0.5 * left if s["higher_is_better"] else 1 + 0.8 * left)}
                for s in made["scores"]
            ]
        rows.append(row)
    return rows


def diagnostics(algorithm: str, ids: Sequence[str], decoders: Sequence[str], r: int) -> dict[str, Any]:
    rng = np.random.default_rng(r)
    if algorithm == "fedhca2":
        alpha = {c: 0.1 + 0.0005 * r * (1 + k) for k, c in enumerate(ids)}
        beta = {d: [0.1 + 0.05 * (6 - layer) + 0.01 * k for layer in range(6)] for k, d in enumerate(decoders)}
        return {"alpha": alpha, "beta": beta}
    if algorithm == "matfl":
        n, k = len(ids), min(8, len(ids))
        votes = np.zeros((8, n, n), int)
        for layer in votes:
            for i, row in enumerate(layer):
                order = sorted(range(n), key=lambda j: (j != i) + abs(i - j) / 6 + 1.5 * rng.random())[:k]
                row[order] = np.arange(k, 0, -1)
        friends = {c: [ids[j] for j in np.argsort(-votes[:, i].sum(0), kind="stable")[:k]] for i, c in enumerate(ids)}
        layers = [f"encoder.layers_{s}.blocks.{b}.mlp.fc{f}.weight" for s in (2, 3) for b in (0, 1) for f in (1, 2)]
        return {"groups": friends, "votes": {"layers": layers, "clients": list(ids), "votes": votes.tolist()}}
    return {}


def grams(clients: Mapping) -> dict[str, Any]:
    """Updates that point where their dataset and task do."""
    rng = np.random.default_rng(0)
    corner = {name: rng.normal(size=40) for d, tasks in clients.values() for name in (d, *tasks)}
    x = np.array([2 * corner[d] + sum(corner[t] for t in tasks) + rng.normal(size=40) for d, tasks in clients.values()])
    return {"encoder": {"owners": [[c, None] for c in clients], "gram": (x @ x.T).tolist()}}


def energy_row(kwh: float, co2e_g: float) -> dict[str, Any]:
    """What a timing row says of the energy so far."""
    used = {"kwh": kwh, "co2e_g": co2e_g, "seconds": 50.0}
    place = {"country": None, "region": None, "g_per_kwh": 300.0}
    return {**used, "parts": {"cpu": kwh}, "round": used, "how": {"cpu": "measured: RAPL"}, **place}


def write_rounds(
    root: Path, algorithm: str, seed: int = 0, clients: Mapping = DUO, rounds: int = 6, every: int = 2, **given: Any
) -> Path:
    """A run with everything the figures read; `given` goes to the summary."""
    energy = given.pop("energy", True)
    title = {"title": {"fedrep": "FedRep"}.get(algorithm) or TITLES.get(algorithm, algorithm)}
    values = given.pop("values", None) or finals(algorithm, seed, clients)
    made = summary(algorithm, values, seed, clients, **{"rounds": rounds, **title, **given})
    place = NINE.index(algorithm) if algorithm in NINE else 0
    made["bytes_up"] = made["bytes_down"] = rounds * 5 * 10**7 * (algorithm != "local") * (1 + place % 3)
    folder = write_run(root, made)
    ids = list(clients)
    decoders = [f"{c}/{t}" for c, (_, tasks) in clients.items() for t in tasks]
    rows = curves(made, rounds, every)
    for row in rows:
        row["algorithm"] = diagnostics(algorithm, ids, decoders, row["round"])
        if "scores" in row and algorithm != "local":
            row["updates"] = grams(clients)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kwh = [energy_row(0.001 * r * (1 + place), 0.3 * r) if energy else None for r in range(1, rounds + 1)]
    timing = [{"round": r, "seconds": {"train": 50.0 + 3 * place}, "energy": kwh[r - 1]} for r in range(1, rounds + 1)]
    (folder / "timing.jsonl").write_text("".join(json.dumps(row) + "\n" for row in timing))
    seconds = rounds * (50.0 + 3 * place)
    bill = {key: kwh[-1][key] for key in ("kwh", "co2e_g")} if energy else None
    cost = {"seconds": {"train": seconds}, "seconds_total": seconds, "energy": bill}
    (folder / "cost.json").write_text(json.dumps(cost))
    return folder
