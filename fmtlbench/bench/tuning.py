"""Tuning: the same number of trials for every method, a choice on validation images, then runs on the test images.

A trial is an ordinary run with `data.validation`, so nothing here ever sees a test score before the choice is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError, UsageError, unknown
from ..base.files import write_json
from ..config.presets import name_preset
from ..config.request import RunRequest
from ..config.setting import EQUAL, WEIGHTING, WEIGHTING_OPTIONS, digest, is_below
from ..runs.folder import with_format
from ..runs.records import Summary, Tuning
from .grid import BASELINE, Grid, Variant, place_trials
from .plan import Plan, PlannedRun, Refusal, join_plans, list_baselines, make_plan

ON = ("methods", BASELINE)  # whose trials decide: each method's own, or those of local for all
SHARE = "data.validation"
CRITERION = "highest Δm against the method's default on the validation images, the mean over seeds; the default has 0"
Judge = Callable[[Summary, Summary], float]  # Δm of a trial against the default, in percent


@dataclass(frozen=True)
class Rules:
    """How a choice is made."""

    on: str = "methods"
    validation: float = 0.2  # share of each client's training images
    seeds: tuple[int, ...] = (0,)  # of the trials

    def __post_init__(self) -> None:
        if self.on not in ON:
            raise unknown("way to tune", self.on, ON, "--tune-on")
        if not 0 < self.validation <= 0.5:
            raise UsageError(f"--validation {self.validation:g}: expected a number above 0, at most 0.5")


@dataclass(frozen=True)
class Search:
    """The trials of one method in one scenario and preset; the first one is its default, which costs no trial."""

    variant: Variant
    scenario: str
    preset: str
    trials: tuple[dict[str, Any], ...]  # overrides, those of the default empty
    runs: tuple[tuple[PlannedRun, ...], ...]  # of each trial, by seed; none where the method refuses
    refusals: tuple[Refusal | None, ...]  # of each trial


@dataclass(frozen=True)
class TuningPlan:
    """All searches of a bench, and their runs as one plan."""

    grid: Grid
    rules: Rules
    searches: tuple[Search, ...]
    plan: Plan

    @property
    def budget(self) -> int:
        """Return the most trials that a method has, its default not counted."""
        return max(len(search.trials) - 1 for search in self.searches)


@dataclass(frozen=True)
class Trial:
    """What came of a trial; `delta_m` is None where it has no score, for the reason given."""

    overrides: dict[str, Any]
    delta_m: float | None
    folders: tuple[str, ...]
    hashes: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class Choice:
    """A finished search; `chosen` is None where there is nothing to choose from, for the reason given."""

    search: Search
    trials: tuple[Trial, ...]  # without the default
    chosen: dict[str, Any] | None
    delta_m: float | None = None
    reason: str = ""

    @property
    def finished(self) -> int:
        """Return how many trials have a score."""
        return sum(trial.delta_m is not None for trial in self.trials)


def plan_tuning(grid: Grid, rules: Rules, template: RunRequest, device: str, with_local: bool = True) -> TuningPlan:
    """Plan the trials of every method; `template`, `device` and `with_local` as for `make_plan`.

    Raises:
        UsageError: Nothing to try, or something that cannot be tried so.
    """
    _check(grid, rules)
    out = Path(template.out)
    template = replace(template, out=str(out / ".bench" / "trials"), fresh=False)
    variants = list_tuned(grid, with_local)
    if rules.on == BASELINE:
        plain = [variant for variant in variants if variant.overrides.get(WEIGHTING, EQUAL) == EQUAL]
        variants = [variant for variant in plain if variant.algo == BASELINE]
        if len(variants) != 1:
            told = ", ".join(variant.label for variant in variants) or "none"
            raise UsageError(f"--tune-on local: needs one local run to choose on, this bench has {told}")
    searches, plans = [], []
    for preset in grid.presets:
        for scenario in grid.scenarios:
            tried = {v.label: ({}, *grid.trials.of(v)) for v in variants}
            rows = [v.with_trial(trial) for v in variants for trial in tried[v.label]]
            flags = {**grid.flags, SHARE: rules.validation}
            where = dict(grid.where)
            for variant in variants:
                where |= place_trials(variant, tried[variant.label], grid.trials, grid.where)
            part = replace(
                grid,
                variants=tuple(rows),
                scenarios=(scenario,),
                presets=(preset,),
                seeds=rules.seeds,
                flags=flags,
                where=where,
            )
            plan = make_plan(part, template, device, with_local=False)
            plans.append(plan)
            for variant in variants:
                trials = tried[variant.label]
                labels = [variant.with_trial(trial).label for trial in trials]
                runs = tuple(_runs_of(plan, label) for label in labels)
                refused = {refusal.label: refusal for refusal in plan.refusals}
                searches.append(Search(variant, scenario, preset, trials, runs, tuple(map(refused.get, labels))))
    whole = join_plans(plans)
    whole.known = (out,)
    return TuningPlan(grid, rules, tuple(searches), whole)


def list_tuned(grid: Grid, with_local: bool) -> list[Variant]:
    """Return the methods that are tuned: those asked for, and the local ones that they are compared with."""
    local = list_baselines(grid, grid.variants) if with_local else {}
    return [*grid.variants, *(Variant(label, BASELINE, overrides) for label, overrides in local.items())]


def _check(grid: Grid, rules: Rules) -> None:
    if not grid.trials.ranges:
        raise UsageError("--tune: what to try? For example --search train.lr=1e-4..1e-2:log --trials 12, or --sweep")
    for overrides in (grid.flags, grid.defaults, *(variant.overrides for variant in grid.variants)):
        if SHARE in overrides:
            raise UsageError(f"{SHARE}={overrides[SHARE]}: --tune sets it for the trials; --validation says how much")
    for one in grid.trials.ranges.values():
        if one.key == SHARE or one.key.partition(".")[0] == "scenario":
            raise UsageError(f"--tune: {one.key} is what a choice is made for, not an option to choose")
        if one.key == WEIGHTING:
            raise UsageError(f"--tune: {WEIGHTING} is a part of the method; name each: --algos fedavg+uw,fedavg+dwa")
        of_method = one.key.startswith("algo.") or is_below(one.key, [WEIGHTING_OPTIONS])
        if rules.on == BASELINE and (one.algo not in (None, BASELINE) or of_method):
            raise UsageError(f"--tune-on local: {one.name} is an option of a method that local does not have")


def _runs_of(plan: Plan, label: str) -> tuple[PlannedRun, ...]:
    items = [item for (name, _), cell in plan.cells.items() if name == label for item in cell]
    return tuple(item for item in items if isinstance(item, PlannedRun))


def choose(tuning: TuningPlan, judge: Judge) -> list[Choice]:
    """Choose for every method and scenario what was best on validation; the default where no trial was better."""
    return [_choose(search, judge) for search in tuning.searches]


def _choose(search: Search, judge: Judge) -> Choice:
    defaults = search.runs[0]
    if not defaults:
        return Choice(search, (), None, reason="refused")
    trials = tuple(
        _judge(overrides, runs, defaults, judge) if refusal is None else _tell_refusal(overrides, refusal)
        for overrides, runs, refusal in zip(search.trials[1:], search.runs[1:], search.refusals[1:])
    )
    if not all(run.finished() for run in defaults):
        return Choice(search, trials, None, reason="its default has no result on validation to compare with")
    best = max((trial for trial in trials if trial.delta_m is not None), key=_rank, default=None)
    if best is None or _rank(best) <= 0:
        return Choice(search, trials, {}, 0.0)
    return Choice(search, trials, best.overrides, best.delta_m)


def _rank(trial: Trial) -> float:
    assert trial.delta_m is not None, trial
    return trial.delta_m


def _tell_refusal(overrides: dict[str, Any], refusal: Refusal) -> Trial:
    return Trial(overrides, None, (), (), f"refused: {refusal.reason}")


def _judge(
    overrides: dict[str, Any], runs: Sequence[PlannedRun], defaults: Sequence[PlannedRun], judge: Judge
) -> Trial:
    """Return the mean Δm of a trial over its seeds, or why it has none."""
    folders = tuple(str(run.store.folder) for run in runs)
    hashes = tuple(run.config.hash() for run in runs)
    gains = []
    try:
        for run, default in zip(runs, defaults):
            ours, theirs = run.store.summary(), default.store.summary()
            if ours is None or theirs is None:
                return Trial(overrides, None, folders, hashes, "not finished")
            gains.append(judge(ours, theirs))
    except FmtlbenchError as error:
        return Trial(overrides, None, folders, hashes, str(error))
    return Trial(overrides, sum(gains) / len(gains), folders, hashes)


def identify(tuning: TuningPlan, choices: Sequence[Choice]) -> str:
    """Return the id of a tuning: of its rules and of the trials that have a score, so that no two mix in a table."""
    counted = [
        [choice.search.variant.label, [trial.hashes for trial in choice.trials if trial.delta_m is not None]]
        for choice in choices
    ]
    rules = tuning.rules
    return digest({"on": rules.on, "validation": rules.validation, "seeds": list(rules.seeds), "trials": counted})[:8]


def plan_chosen(
    tuning: TuningPlan, choices: Sequence[Choice], template: RunRequest, device: str, with_local: bool = True
) -> tuple[Plan, dict[PlannedRun, Choice]]:
    """Plan the chosen configs with all seeds and all training images, in OUT/tuned-<id>; and whose choice each is.

    Methods without a choice are left out, but those that refuse a scenario are refused here too.
    """
    out = Path(template.out)
    template = replace(template, out=str(out / f"tuned-{identify(tuning, choices)}"))
    grid, plans, owner = tuning.grid, [], {}
    for preset in grid.presets:
        for scenario in grid.scenarios:
            here = [c for c in choices if (c.search.scenario, c.search.preset) == (scenario, preset)]
            found = {choice.search.variant.label: choice for choice in here}
            variants = {}
            for variant in list_tuned(grid, with_local):
                choice = found.get(variant.label) or _of_local(found, tuning.rules)
                if choice is not None and choice.chosen is not None:
                    overrides = {**variant.overrides, **choice.chosen}
                    variants[variant.label] = Variant(variant.label, variant.algo, overrides), choice
            if not variants:
                continue
            rows = tuple(variant for variant, _ in variants.values())
            part = replace(grid, variants=rows, scenarios=(scenario,), presets=(preset,))
            plan = make_plan(part, template, device, with_local=False)
            plans.append(plan)
            owner |= {run.store.folder: variants[run.label][1] for run in plan.runs}
    if not plans:
        reasons = [f"{choice.search.variant.label}: {choice.reason}" for choice in choices]
        raise UsageError(f"--tune: nothing could be chosen: {'; '.join(reasons)}")
    whole = join_plans(plans)
    for search in (choice.search for choice in choices if choice.chosen is None):
        if (refused := search.refusals[0]) is not None:
            whole.refusals.append(replace(refused, seeds=len(grid.seeds)))
            whole.cells.setdefault((refused.label, refused.scenario), []).append(whole.refusals[-1])
    whole.known = (out, tuning.plan.out)
    return whole, {run: owner[run.store.folder] for run in whole.runs}


def _of_local(found: Mapping[str, Choice], rules: Rules) -> Choice | None:
    return next(iter(found.values()), None) if rules.on == BASELINE else None


def record_tuning(
    out: Path, tuning: TuningPlan, choices: Sequence[Choice], owners: Mapping[PlannedRun, Choice]
) -> Path:
    """Write every trial and choice to OUT/.bench/tuning-<id>.json, and into each chosen run how it was chosen."""
    file = out / ".bench" / f"tuning-{identify(tuning, choices)}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, with_format(describe(tuning, choices)))
    for run, choice in owners.items():
        record: Tuning = {**_common(tuning, choices), "trials": choice.finished, "chosen": choice.chosen or {}}
        run.store.files.write_tuning({**record, "delta_m": choice.delta_m, "file": str(file)})
    return file


def describe(tuning: TuningPlan, choices: Sequence[Choice]) -> dict[str, Any]:
    """Return the whole search as plain data: the rules, every trial with its Δm, and the choices."""
    return {
        **_common(tuning, choices),
        "ranges": {name: one.text for name, one in tuning.grid.trials.ranges.items()},
        "search_seed": tuning.grid.trials.seed if tuning.grid.trials.count is not None else None,
        "choices": [
            {
                "name": choice.search.variant.label,
                "scenario": Path(choice.search.scenario).stem,
                "preset": name_preset(choice.search.preset),
                "trials_finished": choice.finished,
                "chosen": choice.chosen,
                "delta_m": choice.delta_m,
                "reason": choice.reason,
                "trials": [
                    {"set": t.overrides, "delta_m": t.delta_m, "reason": t.reason, "runs": list(t.folders)}
                    for t in choice.trials
                ],
            }
            for choice in choices
        ],
    }


def _common(tuning: TuningPlan, choices: Sequence[Choice]) -> dict[str, Any]:
    return {
        "tuning": identify(tuning, choices),
        "keys": tuning.grid.trials.keys(),
        "on": tuning.rules.on,
        "budget": tuning.budget,
        "validation": tuning.rules.validation,
        "seeds": list(tuning.rules.seeds),
        "criterion": CRITERION,
    }
