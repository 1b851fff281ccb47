"""What belongs in one table, and how a setting is told in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import FmtlbenchError
from .collect import RunRecord
from .labels import counted

if TYPE_CHECKING:
    import pandas as pd

MOST_TOLD = 4  # values that tell a setting from its neighbours
# Of a config: decides no number, or is not the setting's.
_APART = (
    "algorithm.", "seed", "checkpoint_every", "numerics", "scenario.description", "scenario.paper",
    "scenario.parameters.", "data.workers", "model.weights",
)  # fmt: skip


def by_setting(rows: pd.DataFrame, runs: list[RunRecord]) -> list[tuple[str, pd.DataFrame, list[RunRecord]]]:
    """(scenario, rows, runs) of every setting; two runs for one place in a table are refused."""
    with_rows = set(rows["run"])
    settings: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        if run.name in with_rows:
            settings.setdefault(_together(run), []).append(run)
    ordered = sorted(settings.items(), key=lambda item: tuple(map(str, item[0])))
    place = {run.name: number for number, (_, here) in enumerate(ordered) for run in here}
    numbers = rows["run"].map(place)
    found = []
    for number, (key, here) in enumerate(ordered):
        _refuse_twins(here)
        found.append((key[0], rows[numbers == number], here))
    return found


def _together(run: RunRecord) -> tuple:
    """What all runs of a table have in common."""
    s = run.summary
    rounds = f"{s['rounds']:09}"  # so that text sorts as numbers do
    return (s["scenario"], s.get("scenario_version"), s["preset"], s["data"], rounds, run.data_key, run.setting)


def _refuse_twins(runs: list[RunRecord]) -> None:
    seen: dict[tuple, RunRecord] = {}
    for run in runs:
        key = (run.summary["algorithm"], run.label, run.summary["seed"])
        if key in seen:
            raise FmtlbenchError(
                f"two runs of {run.label}, seed {run.summary['seed']}, in one setting: {seen[key].folder} and "
                f"{run.folder}; remove one, or name the folders you mean"
            )
        seen[key] = run


# -- words -------------------------------------------------------------------------------------------------------------


def describe(runs: Sequence[RunRecord], words: str = "") -> str:
    """The setting of a table in one line; `words` tell it from its neighbours."""
    s = runs[0].summary
    data = f"{s['data']} data" + (f" {runs[0].data_key}" if runs[0].data_key else " (no fingerprint)")
    seeds = sorted({run.summary["seed"] for run in runs})
    how = "mean ± standard deviation over seeds" if len(seeds) > 1 else "seed"
    chosen = scenario_parameters(runs[0])
    parts = [
        *([f"scenario with {', '.join(f'{k}={v}' for k, v in chosen.items())}"] if chosen else []),
        f"preset {s['preset']}", data, counted(s["rounds"], "round"),
        listed({run.summary.get("device") or "unknown device" for run in runs}), "scores of the last round",
        f"{how} {listed(seeds)}", f"setting {runs[0].setting[:14]}{f' ({words})' if words else ''}",
        f"fmtlbench {listed({run.version or 'unknown version' for run in runs})}",
    ]  # fmt: skip
    return " · ".join(parts)


def scenario_parameters(run: RunRecord) -> dict[str, Any]:
    """The numbers that the scenario's file leaves open, as this run had them."""
    return (run.summary.get("setting_text") or {}).get("scenario_parameters") or {}


def distinguishing(runs: Sequence[RunRecord]) -> list[str]:
    """For one run of each setting: the values that set it apart from the others of its scenario."""
    told = []
    for run in runs:
        mine = _told_values(run)
        others = [_told_values(o) for o in runs if o.summary["scenario"] == run.summary["scenario"]]
        keys = [k for k in mine if any(other and other.get(k) != mine[k] for other in others)]
        told.append(", ".join(f"{k} {_text(mine[k])}" for k in keys))
    alike: dict[tuple, list[int]] = {}
    for i, run in enumerate(runs):
        alike.setdefault((*_together(run)[:-1], repr(scenario_parameters(run)), told[i]), []).append(i)
    for numbers in alike.values():
        if len(numbers) > 1:  # the summaries do not say it: their configs do
            words = _by_config([runs[i] for i in numbers])
            for i, more in zip(numbers, words):
                told[i] = ", ".join(filter(None, (told[i], more)))
    return told


def _told_values(run: RunRecord) -> dict[str, Any]:
    return {k: v for k, v in (run.summary.get("setting_text") or {}).items() if k != "scenario_parameters"}


def _by_config(runs: Sequence[RunRecord]) -> list[str]:
    configs = [{k: v for k, v in flat(run.config).items() if not k.startswith(_APART)} for run in runs]
    if not all(configs):
        return [""] * len(runs)
    keys = [k for k in dict.fromkeys(k for c in configs for k in c) if len({repr(c.get(k)) for c in configs}) > 1]
    more = f" and {len(keys) - MOST_TOLD} more" if len(keys) > MOST_TOLD else ""
    return [", ".join(f"{k} {_text(c.get(k))}" for k in keys[:MOST_TOLD]) + more for c in configs]


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} → {"a.b": 1}."""
    if not isinstance(value, dict):
        return {prefix: value}
    return {k: v for key, inner in value.items() for k, v in flat(inner, f"{prefix}.{key}" if prefix else key).items()}


def _text(value: Any) -> str:
    text = " and ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def listed(items: Iterable[Any]) -> str:
    return ", ".join(map(str, sorted(items, key=lambda i: (str(type(i)), i))))
