"""Scores and costs over rounds, read from run folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.errors import FmtlbenchError
from ..collect import RunRecord


class PlotError(FmtlbenchError):
    """The runs at hand cannot be drawn; the message says which of them lack what."""


def evaluated(run: RunRecord, split: str) -> dict[int, list[dict[str, Any]]]:
    """Round → its primary scores on the split, for the rounds that were evaluated on it."""
    rounds = {
        row["round"]: [r for r in row["scores"] if r["primary"] and r["split"] == split]
        for row in run.rounds()
        if row.get("scores")
    }
    rounds = {number: records for number, records in rounds.items() if records}
    if not rounds:
        raise PlotError(f"{run.name}: metrics.jsonl has no scores of split {split!r}")
    return rounds


# -- what a run has used up after each round -------------------------------------------------------------------------


def _bytes(run: RunRecord) -> dict[int, float]:
    return _running({row["round"]: (row["bytes_up"] + row["bytes_down"]) / 1e9 for row in run.rounds()})


def _hours(run: RunRecord) -> dict[int, float]:
    return _running({row["round"]: sum(row["seconds"].values()) / 3600 for row in run.timing()})


def _kwh(run: RunRecord) -> dict[int, float]:
    rows = run.timing()
    if not rows or any((row.get("energy") or {}).get("kwh") is None for row in rows):
        raise PlotError(f"{run.name}: timing.jsonl has no energy of every round; x can be rounds, bytes or hours")
    return {row["round"]: row["energy"]["kwh"] for row in rows}


def _running(values: dict[int, float]) -> dict[int, float]:
    total, out = 0.0, {}
    for round_, value in sorted(values.items()):
        total += value
        out[round_] = total
    return out


# name → (what it is, its unit or "", run → round → amount so far)
AMOUNTS: dict[str, tuple[str, str, Callable[[RunRecord], dict[int, float]]]] = {
    "rounds": ("communication round", "", lambda run: {row["round"]: row["round"] for row in run.rounds()}),
    "kwh": ("energy", "kWh", _kwh),
    "bytes": ("communication", "GB", _bytes),
    "hours": ("time", "h", _hours),
}
