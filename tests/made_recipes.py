"""Finished runs in the folders that a plan gives them, with scores of the test's choosing and no training."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from made_runs import METRIC, summary

from fmtlbench.base.schema import plain
from fmtlbench.bench.plan import PlannedRun
from fmtlbench.bench.recipes import Planned, plan_recipes
from fmtlbench.config.request import RunRequest
from fmtlbench.reports.papers.recipes import load_recipe

Value = Callable[[str, str, str, str], float]  # dataset, task, metric, split → score
EDGE_LOSS = ("edge_loss_public", "", False)


def plan(name: str, out: Path, preset: str | None = None, seeds=(0,), public_code=False, **overrides: Any) -> Planned:
    """One recipe, planned."""
    how = {"preset": preset, "seeds": tuple(seeds), "overrides": overrides, "public_code": public_code}
    return plan_recipes([load_recipe(name)], RunRequest("", "", out=str(out)), "cpu", **how)[0]


def finish(run: PlannedRun, value: Value = lambda *at: 50.0, rounds: Mapping[int, Value] | None = None) -> Path:
    """Write the run as finished; `rounds` are evaluated rounds before the last, with their scores."""
    config, store = run.config, run.store
    clients = {p.id: (p.dataset, p.tasks) for p in config.scenario.parties()}
    scores = _scores(run, value)
    made = summary(
        config.algorithm.name,
        seed=config.seed,
        clients=clients,
        title=_title(config.algorithm.name),
        options=plain(config.algorithm.options),
        scenario=config.scenario.name,
        scenario_version=config.scenario.version,
        preset=config.preset,
        data=config.data.source,
        rounds=config.federation.rounds,
        config_hash=config.hash(),
        setting=config.setting().key,
        setting_text={},
        departures=plain(config.departures),
        code={"sha256": store.code.sha256, "parts": dict(store.code.parts)},
        scores=scores,
    )
    folder = store.folder
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.dump(), encoding="utf-8")
    last = config.federation.rounds
    evaluated = {**{r: _scores(run, v) for r, v in (rounds or {}).items()}, last: scores}
    rows = [{"round": r, "losses": {}, "bytes_up": 1, "bytes_down": 1} for r in range(1, last + 1)]
    for row in rows:
        if row["round"] in evaluated:
            row["scores"] = evaluated[row["round"]]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "timing.jsonl").write_text(
        "".join(json.dumps({"round": r, "seconds": {"train": 5.0}}) + "\n" for r in range(1, last + 1))
    )
    (folder / "cost.json").write_text(json.dumps({"seconds": {"train": 5.0 * last}, "seconds_total": 5.0 * last}))
    (folder / "manifest.json").write_text(json.dumps({"config_hash": config.hash(), "data": {}, "sessions": []}))
    (folder / "summary.json").write_text(json.dumps(made))
    return folder


def _title(name: str) -> str:
    from fmtlbench.algorithms import ALGORITHMS

    return ALGORITHMS.resolve(name).title


def _scores(run: PlannedRun, value: Value) -> list[dict[str, Any]]:
    config, records = run.config, []
    loss = (config.evaluation.metrics or {}).get("edge") == "edge_loss_public"
    for party in config.scenario.parties():
        for split in config.scenario.evaluation:
            for task in party.tasks:
                kinds = [EDGE_LOSS if task == "edge" and loss else METRIC[task]]
                kinds += [("sal_mIoU", "%", True)] * (task == "sal")
                for number, (metric, unit, up) in enumerate(kinds):
                    at = {"client": party.id, "dataset": party.dataset, "split": split, "task": task, "metric": metric}
                    score = value(party.dataset, task, metric, split)
                    about = {"unit": unit, "higher_is_better": up, "trivial": 1.0} if number == 0 else {}
                    records.append({**at, "value": score, "primary": number == 0, **about})
    return records
