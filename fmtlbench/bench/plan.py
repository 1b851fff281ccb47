"""From a request to the runs it means: their configs, what is already on disk, what no run can be made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError, RefusedError, UsageError, one_line
from ..base.schema import plain
from ..base.words import say_count
from ..config.presets import default_options, name_preset, read_preset
from ..config.request import RunRequest, name_line
from ..config.resolve import resolve, resolve_options, resolve_without_method
from ..config.run_config import RunConfig
from ..config.setting import EQUAL, WEIGHTING, WEIGHTING_OPTIONS
from ..runs.absence import REFUSED, Absence, refused_file
from ..runs.code_identity import CodeIdentity, Sources
from ..runs.configured_code import code_of
from ..runs.store import RunStore
from ..runs.summary import describe_weighting
from .grid import BASELINE, Grid, Variant, label_of, without_weighting

OTHER_CODE = "other code"  # only a run by other code is there, which does not count
DAMAGED = "damaged"  # a file of the run cannot be read, so that it cannot be shown or gone on with
STATES = ("done", "resume", "new", OTHER_CODE, DAMAGED)


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """One run: what it is called, how it is asked for, and what lies in its folder."""

    label: str
    request: RunRequest
    config: RunConfig
    store: RunStore
    state: str  # one of STATES
    rounds_done: int
    problem: str = ""  # what is damaged, and what to do

    @property
    def name(self) -> str:
        """Return a name for people: unique within a plan of one preset."""
        return f"{self.config.scenario.name} · {self.label} · s{self.config.seed}"

    @property
    def key(self) -> str:
        """Return what names the run and the code that makes it: one process at a time does it."""
        return f"{self.config.hash()[:32]}-{self.store.code.sha256[:8]}"

    @property
    def rounds_left(self) -> int:
        return max(self.config.federation.rounds - self.rounds_done, 0) if self.state != "done" else 0

    def finished(self) -> bool:
        """Whether there is a result by now, wherever the run lies by now."""
        self.store.choose_folder()
        return self.store.files.is_finished()

    def finished_by_newer_code(self) -> bool:
        """Whether the run's process has left a result by code that was edited after the plan was made."""
        self.store.code = code_of(self.config, Sources())
        return self.finished()


@dataclass(frozen=True, eq=False)
class Refusal:
    """A pair that has no meaning, with the reason."""

    variant: Variant
    asked: str  # the scenario, by name or path
    preset: str
    overrides: dict[str, Any]
    seeds: int
    reason: str

    @property
    def label(self) -> str:
        return self.variant.label

    @property
    def scenario(self) -> str:
        return Path(self.asked).stem


@dataclass
class Plan:
    """Runs in the order in which they are to be done; `cells` says which belong to a row and column of the table."""

    out: Path
    runs: list[PlannedRun] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    cells: dict[tuple[str, str], list[PlannedRun | Refusal]] = field(default_factory=dict)
    absences: dict[Path, Absence] = field(default_factory=dict)  # file below `out` → what tables say of a refusal
    known: tuple[Path, ...] = ()  # other folders with runs whose pace may be learnt from

    def missing(self) -> list[PlannedRun]:
        return [run for run in self.runs if run.state != "done"]

    def counts(self) -> dict[str, int]:
        states = [run.state for run in self.runs]
        found = {state: states.count(state) for state in STATES}
        return {**found, "refused": sum(refusal.seeds for refusal in self.refusals)}

    def notes(self) -> list[str]:
        """Say what a table of states does not: why pairs are refused, what is damaged, how other code differs."""
        damaged = [f"damaged: {one_line(run.problem)}" for run in self.runs if run.problem]
        return [*(f"refused: {refusal.reason}" for refusal in self.refusals), *damaged, *self.code_changes()]

    def code_changes(self) -> list[str]:
        """Say how other code differs that has made runs of this plan, and what that means; a line for each change."""
        concerned: dict[tuple[str, bool], int] = {}
        for run in self.runs:
            if place := run.store.place if run.store.place.change else None:
                key = (place.change, place.is_by_other)
                concerned[key] = concerned.get(key, 0) + 1
        lines = []
        for (change, is_taken), count in concerned.items():
            means = (
                "taken as they are" if is_taken else "not taken, a folder of its own for each; --reuse any takes them"
            )
            lines.append(f"other code: {say_count(count, 'run')} ({change}): {means}")
        return lines

    def table(self, state_of: Callable[[PlannedRun], str]) -> list[dict[str, str]]:
        """Return records for printing, methods × scenarios, the longer side down; a cell counts runs by their state."""
        axes = [list(dict.fromkeys(key[i] for key in self.cells)) for i in (0, 1)]
        upright = len(axes[0]) >= len(axes[1])
        rows, columns = axes if upright else reversed(axes)
        records = []
        for row in rows:
            record = {"name": row}
            for column in columns:
                items = self.cells.get((row, column) if upright else (column, row), ())
                states = ["refused" if isinstance(item, Refusal) else state_of(item) for item in items]
                record[column] = ", ".join(_count(states, state) for state in dict.fromkeys(states)) or "–"
            records.append(record)
        return records


def _count(states: list[str], state: str) -> str:
    return state if state == "refused" else f"{states.count(state)} {state}"


def make_plan(grid: Grid, template: RunRequest, device: str, with_local: bool = True) -> Plan:
    """Resolve every (method, scenario, preset, seed) of the grid.

    Args:
        grid: Which runs.
        template: What all of them are asked with beside that.
        device: The kind that `template.device` means here: cpu, cuda or mps.
        with_local: Add the local runs that others are compared with.
    """
    plan, sources = Plan(Path(template.out)), Sources()
    # `auto` becomes what was found, so that the runs land where the plan looked.
    template = replace(template, device=device if template.device == "auto" else template.device)
    found: dict[Path, PlannedRun] = {}
    order: dict[PlannedRun, tuple] = {}

    def enter(variant: Variant, overrides: dict[str, Any], scenario: str, preset: str) -> bool:
        """Fill one cell of the table; False if it is refused."""
        column = Path(scenario).stem + (f" ({name_preset(preset)})" if len(grid.presets) > 1 else "")
        cell = plan.cells.setdefault((variant.label, column), [])
        config = _resolve(grid, variant, scenario, preset, device, overrides)
        if isinstance(config, str):
            plan.refusals.append(Refusal(variant, scenario, preset, overrides, len(grid.seeds), config))
            cell.append(plan.refusals[-1])
            return False
        code = code_of(config, sources)
        for seed in grid.seeds:
            where = template.data_root if config.reads_files else None
            asked = replace(
                template,
                algo=variant.algo,
                scenario=scenario,
                preset=preset,
                seed=seed,
                data_root=where,
                overrides=overrides,
            )
            run = _planned(variant.label, asked, replace(config, seed=seed), code)
            run = found.setdefault(run.store.folder, run)
            cell.append(run)
            # A seed's baseline, then its methods: the first complete table comes as early as it can.
            order.setdefault(run, (seed, not _is_baseline(config), len(order)))
        return True

    for preset in grid.presets:
        for scenario in grid.scenarios:
            entered = [v for v in grid.variants if enter(v, grid.overrides(v), scenario, preset)]
            for variant, overrides in list_baselines(grid, entered).items() if with_local else ():
                enter(Variant(variant, BASELINE), overrides, scenario, preset)
    plan.runs = sorted(order, key=order.__getitem__)
    if not plan.runs:
        raise UsageError(f"nothing to run: {plan.refusals[0].reason}")
    for refusal in plan.refusals:
        overrides = _without_options(refusal.overrides)
        try:
            config = resolve_without_method(refusal.asked, refusal.preset, device=device, overrides=overrides)
        except UsageError:  # impossible for every method: there is no table that could tell it
            continue
        method, options = _method(refusal)
        defaults = default_options(method, refusal.preset)
        setting, weighting = config.setting(), describe_weighting(config)
        absence = Absence.of(REFUSED, refusal.reason, method, options, setting, None, defaults, weighting)
        plan.absences[refused_file(method.name, options, setting, weighting)] = absence
    return plan


def join_plans(plans: Sequence[Plan]) -> Plan:
    """Join several plans of one folder; a run that two of them mean is done once."""
    whole = Plan(plans[0].out)
    found: dict[Path, PlannedRun] = {}
    for plan in plans:
        for run in plan.runs:
            found.setdefault(run.store.folder, run)
        whole.refusals += plan.refusals
        whole.absences |= plan.absences
        for key, items in plan.cells.items():
            mine = [found[item.store.folder] if isinstance(item, PlannedRun) else item for item in items]
            cell = whole.cells.setdefault(key, [])
            cell += [item for item in mine if item not in cell]
    # As in one plan: a seed's baselines, then its methods.
    order = {run: place for place, run in enumerate(found.values())}
    whole.runs = sorted(order, key=lambda r: (r.config.seed, not _is_baseline(r.config), order[r]))
    return whole


def _is_baseline(config: RunConfig) -> bool:
    """Return whether others are compared with a run: a local one that weighs its losses equally."""
    return config.algorithm.name == BASELINE and config.train.weighting == EQUAL


def _method(refusal: Refusal) -> tuple[Any, dict[str, Any]]:
    """Return the refused class and its options, the preset's and its own defaults written out."""
    method, options = resolve_options(refusal.variant.algo, refusal.preset, refusal.overrides)
    return method, plain(options)


def _without_options(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides without the options of the method."""
    return {key: value for key, value in overrides.items() if not key.startswith("algo.")}


def list_baselines(grid: Grid, variants: Sequence[Variant]) -> dict[str, dict[str, Any]]:
    """Return, by label, the overrides of the local runs that `variants` need, unless the grid has them.

    A method with a weighting is compared with the plain local run too.
    """
    needed: dict[str, dict[str, Any]] = {}
    plainly = {WEIGHTING: EQUAL} if weighs_by_itself(grid) else {}
    for variant in variants:
        overrides = {**without_weighting(_without_options(grid.overrides(variant))), **plainly}
        own = {k: overrides[k] for k in variant.overrides if k in overrides and k not in grid.flags} | plainly
        needed.setdefault(label_of(BASELINE, own), overrides)
    there = [grid.overrides(variant) for variant in grid.variants if variant.algo == BASELINE]
    return {label: overrides for label, overrides in needed.items() if overrides not in there}


def weighs_by_itself(grid: Grid) -> bool:
    """Return whether some run of a grid has a weighting of losses without naming it: of all, or of the preset."""
    of_presets = [(read_preset(preset)[0].get("train") or {}).get("weighting", EQUAL) for preset in grid.presets]
    return any(name != EQUAL for name in (*of_presets, *(o.get(WEIGHTING, EQUAL) for o in (grid.defaults, grid.flags))))


def _resolve(
    grid: Grid, variant: Variant, scenario: str, preset: str, device: str, overrides: Mapping[str, Any]
) -> RunConfig | str:
    """Return the config of every seed, or why the method refuses; a mistake is an error with the line it stands on."""
    try:
        return resolve(variant.algo, scenario, preset, seed=0, device=device, overrides=overrides)
    except UsageError as error:
        several = len(grid.variants) > 1
        of_method = str(error).startswith("--set algo.") and several
        of_weighting = str(error).startswith(f"--set {WEIGHTING_OPTIONS}.") and several
        message = str(name_line(error, {key: grid.origin(variant, key) for key in overrides}))
        if isinstance(error, RefusedError):
            return message
        if of_method:
            own = "--algos NAME[algo.option=value], --sweep NAME:algo.option=range"
            message += f" (for {variant.label}; an option of one method only: {own})"
        if of_weighting:
            own = f"--algos NAME+WEIGHTING[{WEIGHTING_OPTIONS}.option=value]"
            message += f" (for {variant.label}; an option of one weighting only: {own})"
        raise type(error)(message) from None


def _planned(label: str, request: RunRequest, config: RunConfig, code: CodeIdentity) -> PlannedRun:
    store = RunStore(Path(request.out), config, code, request.reuse)
    state, rounds = OTHER_CODE if store.place.change else "new", 0
    try:
        if store.summary() is not None:
            state, rounds = "done", config.federation.rounds
        elif rounds := len(store.rounds()):
            state = "resume"
            store.check_records()
    except FmtlbenchError as error:
        return PlannedRun(label, request, config, store, DAMAGED, 0, str(error))
    return PlannedRun(label, request, config, store, state, rounds)
