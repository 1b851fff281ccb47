"""What `fmtlbench probe` runs: methods and those they are compared with, on probes, at every value of a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.errors import UsageError
from ..config.request import RunRequest
from ..config.setting import WEIGHTING
from ..scenarios import Scenario, load_scenario, probe_names
from .grid import Flags, Grid, Variant, read_grid
from .plan import Plan, PlannedRun, join_plans, make_plan, weighs_by_itself
from .ranges import split


@dataclass(frozen=True)
class ProbePlan:
    """One probe at one value of its family's parameter (None: it has none), with the runs that answer it."""

    scenario: Scenario
    value: float | None
    plan: Plan


def choose_probes(text: str | None) -> list[str]:
    """Choose probes by `all`, or names and files; by default those that ask one question and not a family of them.

    Raises:
        UsageError: A scenario that is no probe.
    """
    names = probe_names()
    if text is None:
        return [name for name in names if not load_scenario(name).probe.family]
    chosen: dict[str, None] = {}
    for word in split(text):
        if word == "all":
            chosen |= dict.fromkeys(names)
            continue
        word = f"probe_{word}" if f"probe_{word}" in names else word
        if load_scenario(word).probe is None:
            raise UsageError(f"--probes {word}: its file expects nothing; probes are {', '.join(names)}")
        chosen[word] = None
    if not chosen:
        raise UsageError(f"which probes? --probes all, or some of {', '.join(names)}")
    return list(chosen)


def plan_probes(
    algos: str,
    probes: Sequence[str],
    seeds: str,
    preset: str,
    overrides: Mapping[str, Any],
    template: RunRequest,
    device: str,
) -> tuple[list[Variant], list[ProbePlan], Plan]:
    """Return the methods asked for, each probe's part, and the whole plan; `template`, `device` as for `make_plan`."""
    grids = [read_grid(None, Flags(algos, name, seeds, preset, None, overrides)) for name in probes]
    if weighs_by_itself(grids[0]):  # also of local, which all are compared with
        raise UsageError(f"{WEIGHTING} is set for all; it is a part of the method here: --algos fedavg+uw")
    parts = []
    for name, grid in zip(probes, grids):
        scenario = load_scenario(name)
        others = [Variant(e.than, e.than) for e in scenario.probe.expect if e.measure == "gain"]
        variants = tuple({v.label: v for v in (*grid.variants, *others)}.values())
        for value, own in scenario.members().items():
            asked = Grid(variants, grid.scenarios, grid.seeds, grid.presets, own, grid.flags, {})
            parts.append(ProbePlan(scenario, value, make_plan(asked, template, device)))
    return list(grids[0].variants), parts, join_plans([part.plan for part in parts])


def runs_of(part: ProbePlan) -> dict[str, dict[int, PlannedRun]]:
    """Return the runs by method's label and seed."""
    found: dict[str, dict[int, PlannedRun]] = {}
    for (label, _), items in part.plan.cells.items():
        found[label] = {item.config.seed: item for item in items if isinstance(item, PlannedRun)}
    return found
