"""Scores over rounds and Δm against the local run, read from run folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...errors import FmtlbenchError
from ...metrics import MetricError, delta_m
from ..collect import RunRecord

Scores = dict[tuple[str, str, str], tuple[float | None, bool]]  # (client, task, metric) → value, higher is better


class PlotError(FmtlbenchError):
    """The runs at hand cannot be drawn; the message says which of them lack what."""


def primary(records: Iterable[dict], split: str) -> Scores:
    return {
        (r["client"], r["task"], r["metric"]): (r["value"], r["higher_is_better"])
        for r in records
        if r["primary"] and r["split"] == split
    }


def evaluated(run: RunRecord, split: str) -> dict[int, Scores]:
    """Round → scores, for the rounds that were evaluated."""
    rounds = {row["round"]: primary(row["scores"], split) for row in run.rows() if row.get("scores")}
    if not any(rounds.values()):
        raise PlotError(f"{run.name}: metrics.jsonl has no scores of split {split!r}")
    return rounds


class Baselines:
    """The final scores of the local run of the same setting, data and seed."""

    def __init__(self, runs: Sequence[RunRecord], split: str) -> None:
        self.split = split
        self._final = {
            _alike(run): primary(run.summary["scores"], split) for run in runs if run.summary["algorithm"] == "local"
        }

    def check(self, runs: Iterable[RunRecord]) -> None:
        """One error for everything that is missing."""
        lacking = [run for run in runs if _alike(run) not in self._final]
        if lacking:
            seeds = sorted({(run.summary["scenario"], run.summary["seed"]) for run in lacking})
            names = ", ".join(f"{scenario} seed {seed}" for scenario, seed in seeds)
            raise PlotError(
                f"Δm needs the local run of the same setting and seed; missing for {names} "
                f"({len(lacking)} run{'s' * (len(lacking) > 1)}, such as {lacking[0].name})"
            )

    def delta(self, run: RunRecord, scores: Scores) -> float:
        """Δm in percent of these scores of the run."""
        base = self._final[_alike(run)]
        try:
            return delta_m(
                {key: _finite(value) for key, (value, _) in scores.items()},
                {key: _finite(value) for key, (value, _) in base.items()},
                {key: up for key, (_, up) in scores.items()},
            )
        except MetricError as error:
            raise PlotError(f"{run.name}: {error}") from None


def _finite(value: float | None) -> float:
    return float("nan") if value is None else value


def _alike(run: RunRecord) -> tuple:
    return run.setting, run.data_key, run.summary["seed"]


# -- what a run has used up after each round -------------------------------------------------------------------------


def _bytes(run: RunRecord) -> dict[int, float]:
    return _running({row["round"]: (row["bytes_up"] + row["bytes_down"]) / 1e9 for row in run.rows()})


def _hours(run: RunRecord) -> dict[int, float]:
    return _running({row["round"]: sum(row["seconds"].values()) / 3600 for row in run.rows("timing.jsonl")})


def _kwh(run: RunRecord) -> dict[int, float]:
    rows = run.rows("timing.jsonl")
    if not rows or any((row.get("energy") or {}).get("kwh") is None for row in rows):
        raise PlotError(f"{run.name}: timing.jsonl has no energy of every round; x can be rounds, bytes or hours")
    return {row["round"]: row["energy"]["kwh"] for row in rows}


def _running(values: dict[int, float]) -> dict[int, float]:
    total, out = 0.0, {}
    for round_, value in sorted(values.items()):
        total += value
        out[round_] = total
    return out


# name → (axis label, run → round → amount so far)
AMOUNTS: dict[str, tuple[str, Callable[[RunRecord], dict[int, float]]]] = {
    "rounds": ("communication round", lambda run: {row["round"]: row["round"] for row in run.rows()}),
    "kwh": ("energy (kWh)", _kwh),
    "bytes": ("communication (GB)", _bytes),
    "hours": ("time (hours)", _hours),
}
