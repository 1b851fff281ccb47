"""Runs that differ in more than a grid can say: each with its own method, scenario and values, all with one preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..config.presets import preset_options, read_preset
from ..config.request import RunRequest
from .grid import Grid, Variant
from .plan import Plan, PlannedRun, Refusal, join_plans, make_plan


@dataclass(frozen=True)
class Wanted:
    """One method in one setting, for every seed. `name` tells it from others of its scenario."""

    name: str
    algo: str
    scenario: str
    overrides: Mapping[str, Any]

    @property
    def place(self) -> tuple[str, str]:
        """Return what tells it from all others."""
        return self.name, self.scenario


@dataclass(frozen=True)
class WantedPlan:
    """The plan of all runs, and which of them each place means: a run for every seed, or why there can be none."""

    plan: Plan
    runs: Mapping[tuple[str, str], Mapping[int, PlannedRun]]
    refused: Mapping[tuple[str, str], Refusal]


def carry_over(wanted: Wanted, own: str, preset: str, stand_ins: Mapping[str, str]) -> Wanted | str:
    """Return the same for another preset than a paper's own; a text says why that preset has no form of it.

    The other preset decides data, network and schedule. What the paper's says of methods, of options of networks and of
    metrics goes along, since that is what is compared. `stand_ins` are small backbones: where the preset has one of
    them, they take the places of the paper's.
    """
    if preset == own:
        return wanted
    overrides = dict(wanted.overrides)
    backbone = overrides.get("model.backbone")
    small = set(stand_ins.values())
    if backbone is not None and read_preset(preset)[0].get("model", {}).get("backbone") in small:
        if backbone not in stand_ins and backbone not in small:
            return f"{backbone} has no form as small as the networks of preset {preset}"
        overrides["model.backbone"] = stand_ins.get(backbone, backbone)
        overrides.pop("model.drop_path", None)  # it belongs to the larger one
    carried = {f"algo.{key}": value for key, value in preset_options(own).get(wanted.algo, {}).items()}
    network = preset_options(own, "architectures").get(overrides.get("model.architecture", ""), {})
    carried |= {f"model.options.{key}": value for key, value in network.items()}
    metrics = read_preset(own)[0].get("evaluation", {}).get("metrics", {})
    carried |= {f"evaluation.metrics.{task}": metric for task, metric in metrics.items()}
    return replace(wanted, overrides={**carried, **overrides})


def plan_wanted(
    wanted: Sequence[Wanted],
    seeds: Sequence[int],
    preset: str,
    overrides: Mapping[str, Any],
    template: RunRequest,
    device: str,
) -> WantedPlan:
    """Plan the runs of every seed; `overrides` are above those of single runs. See `make_plan` for the last two."""
    by_scenario: dict[str, list[Wanted]] = {}
    for one in wanted:
        by_scenario.setdefault(one.scenario, []).append(one)
    plans, runs, refused = [], {}, {}
    for scenario, members in by_scenario.items():
        variants = tuple(Variant(one.name, one.algo, dict(one.overrides)) for one in members)
        grid = Grid(variants, (scenario,), tuple(seeds), (preset,), {}, dict(overrides), {})
        plans.append(make_plan(grid, template, device, with_local=False))
        for (name, _), items in plans[-1].cells.items():
            place = (name, scenario)
            runs[place] = {item.config.seed: item for item in items if isinstance(item, PlannedRun)}
            refused.update((place, item) for item in items if isinstance(item, Refusal))
    return WantedPlan(join_plans(plans) if plans else Plan(Path(template.out)), runs, refused)
