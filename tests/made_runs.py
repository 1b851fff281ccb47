"""Run folders as the engine leaves them, with scores of the test's choosing and no training."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.stored import FORMAT
from fmtlbench.base.words import dataset_title
from fmtlbench.config.presets import default_options

METRIC = {
    "semseg": ("mIoU", "%", True),
    "human_parts": ("mIoU", "%", True),
    "sal": ("maxF", "%", True),
    "normals": ("mErr", "deg", False),
    "edge": ("odsF", "%", True),
    "depth": ("RMSE", "m", False),
}
TITLES = {"local": "Local", "fedavg": "FedAvg", "fedprox": "FedProx", "fedper": "FedPer", "ditto": "Ditto",
          "fedamp": "FedAMP", "matfl": "MaT-FL", "fedhca2": "FedHCA²"}  # fmt: skip
# Of a code's identity; not imported, so that the folders can be made for an older package too (benchmarks/fuzz.py).
PARTS = ("engine", "method", "metrics", "tasks", "datasets", "network", "partitions", "weighting")
NOT_OF_THE_CONFIG = ("default_options", "dataset_titles", "code")
SETTING = "5e771" + "0" * 59
# client id → (dataset, tasks)
DUO = {"pascal-semseg": ("pascal", ("semseg",)), "nyud-multi": ("nyud", ("semseg", "depth"))}
ST_MT_1 = {
    **{f"pascal-{task}": ("pascal", (task,)) for task in ("semseg", "human_parts", "sal", "normals", "edge")},
    "nyud-multi": ("nyud", ("semseg", "depth", "normals", "edge")),
}


def score(
    client: str, dataset: str, task: str, value: float | None, split: str = "global", primary: bool = True
) -> dict[str, Any]:
    metric, unit, up = METRIC[task]
    record = {"client": client, "dataset": dataset, "split": split, "task": task, "metric": metric, "value": value,
              "unit": unit, "higher_is_better": up, "primary": primary}  # fmt: skip
    return {**record, "trivial": 10.0} if primary else record


def usual_options(algorithm: str, preset: str) -> dict[str, Any]:
    """What a run's summary says of its method's defaults; methods of no registry have none that are known."""
    return default_options(ALGORITHMS.resolve(algorithm), preset) if algorithm in ALGORITHMS else {}


def code(algorithm: str = "local", **versions: str) -> dict[str, Any]:
    """Which code made a run; `versions` names parts of it that are not the usual ones."""
    versions = {part: "1" for part in PARTS} | {"method": f"{algorithm} 1"} | versions
    parts = {part: hashlib.sha256(f"{part} {version}".encode()).hexdigest() for part, version in versions.items()}
    return {"sha256": hashlib.sha256(json.dumps(parts).encode()).hexdigest(), "parts": parts}


def summary(
    algorithm: str = "local",
    values: Mapping[tuple[str, str], float | None] | None = None,
    seed: int = 0,
    clients: Mapping[str, tuple[str, Sequence[str]]] = DUO,
    splits: Sequence[str] = ("global",),
    extra_scores: Sequence[Mapping[str, Any]] = (),
    **given: Any,
) -> dict[str, Any]:
    """A summary of the newest form. `values` maps (client, task) to a score; the rest are 50 (or 0.5 for depth)."""
    values = values or {}
    scores = [
        score(client, dataset, task, values.get((client, task), 0.5 if task == "depth" else 50.0), split)
        for client, (dataset, tasks) in clients.items()
        for split in splits
        for task in tasks
    ]
    made = {
        "algorithm": algorithm,
        "title": TITLES.get(algorithm, algorithm),
        "options": {},
        "default_options": usual_options(algorithm, given.get("preset", "nano")),
        "dataset_titles": {d: dataset_title(d, given.get("data", "synth")) for d, _ in clients.values()},
        "scenario": "duo",
        "scenario_version": 1,
        "preset": "nano",
        "data": "synth",
        "seed": seed,
        "rounds": 40,
        "device": "cpu",
        "config_hash": "",
        "setting": SETTING,
        "setting_text": {"federation.rounds": 40, "train.lr": 0.006},
        "departures": {},
        "numerics": 1,
        "versions": {"python": "3.12.0", "fmtlbench": "0.1.0", "torch": "2.9.0"},
        "code": code(algorithm),
        "data_fingerprints": {f"{d}/{s}": f"{d}-{s}" for d, _ in clients.values() for s in ("train", "test")},
        "clients": [
            {"id": c, "dataset": d, "tasks": list(t), "samples": 100,
             "parameters": {"encoder": 805027, "decoder": 11112 * len(t), "head": 1500 * len(t)}}
            for c, (d, t) in clients.items()
        ],
        "bytes_up": 788827200,
        "bytes_down": 788827200,
        "scores": [*scores, *extra_scores],
        **given,
    }  # fmt: skip
    if not made["config_hash"]:
        identity = {key: value for key, value in made.items() if key not in NOT_OF_THE_CONFIG}
        made["config_hash"] = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return {"format": FORMAT, **made}


def write_run(root: Path, made: Mapping[str, Any] | None = None, name: str | None = None, **given: Any) -> Path:
    """A finished run folder below `root`; `given` goes to `summary`, unless a summary is given."""
    made = made or summary(**given)
    leaf = name or f"{made['preset']}-{made['data']}-s{made['seed']}-{made['config_hash'][:8]}"
    folder = root / made["scenario"] / made["algorithm"] / leaf
    folder.mkdir(parents=True)
    sessions = [{"started": "2026-01-01T00:00:00+00:00", "versions": made.get("versions") or {"fmtlbench": "0.0.9"}}]
    manifest = {"config_hash": made["config_hash"], "data": made.get("data_fingerprints") or {}, "sessions": sessions}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2))
    cost = {"seconds": {"train": 10.0}, "seconds_total": 10.0, "bytes_up": 1, "bytes_down": 1}
    (folder / "cost.json").write_text(json.dumps(cost))
    rounds = [{"round": r + 1, "losses": {}, "bytes_up": 1, "bytes_down": 1} for r in range(2)]
    rounds[-1]["scores"] = made["scores"]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rounds))
    (folder / "timing.jsonl").write_text(
        "".join(f'{{"round": {r + 1}, "seconds": {{"train": 5.0}}}}\n' for r in (0, 1))
    )
    (folder / "summary.json").write_text(json.dumps(made, indent=2))
    return folder


def write_absence(root: Path, why: str = "refused", reason: str = "it does not fit", **given: Any) -> Path:
    """What a bench leaves in the place of a run; `given` are fields of `Absence`."""
    algorithm = given.get("algorithm", "fedavg")
    record = {
        "why": why, "reason": reason, "algorithm": algorithm, "title": TITLES.get(algorithm, algorithm), "options": {},
        "scenario": "duo", "preset": "nano", "data": "synth", "rounds": 40, "setting": SETTING,
        "seed": None if why == "refused" else 0, "default_options": usual_options(algorithm, "nano"), **given,
    }  # fmt: skip
    leaf = given.pop("leaf", f"nano-synth-s{record['seed']}-{why}")
    record.pop("leaf", None)
    file = root / record["scenario"] / algorithm / f"{leaf}.absent.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record))
    return file
