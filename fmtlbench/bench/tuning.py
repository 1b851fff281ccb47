"""Tuning: the same number of trials for every method, a choice on validation images, then runs on the test images.

A trial is an ordinary run with `data.validation`, so nothing here ever sees a test score before the choice is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError, UsageError, unknown
from ..base.files import write_json
from ..config.presets import name_preset
from ..config.request import RunRequest
from ..config.setting import WEIGHTING, WEIGHTING_OPTIONS, digest, is_below
from ..metrics import MetricError
from ..runs.folder import with_format
from ..runs.records import Summary, Tuning
from .asked_runs import BASELINE, Asked, by_table, with_baselines
from .grid import Grid
from .plan import Plan, PlannedRun, Refusal, make_plan

ON = ("methods", BASELINE)  # whose trials decide: each method's own, or those of local for all
SHARE = "data.validation"
CRITERION = "highest Δm against the method's default on the validation images, the mean over seeds; the default has 0"


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

    asked: Asked
    trials: tuple[Mapping[str, Any], ...]  # overrides, those of the default empty
    runs: tuple[Sequence[PlannedRun], ...]  # of each trial, by seed; none where the method refuses
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

    overrides: Mapping[str, Any]
    delta_m: float | None
    folders: tuple[str, ...]
    hashes: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class TunedChoice:
    """A finished search; `chosen` is None where there is nothing to choose from, for the reason given."""

    search: Search
    trials: tuple[Trial, ...]  # without the default
    chosen: Mapping[str, Any] | None
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
    tried: dict[Asked, dict[Asked, Mapping[str, Any]]] = {}  # what is tuned → its trials → their values
    for one in _decide(list_tuned(grid, with_local), rules):
        base = replace(one, seeds=rules.seeds)
        trials = zip((base, *grid.trials.tried(base)), ({}, *grid.trials.of(base)), strict=True)
        tried[one] = {trial.with_values({SHARE: rules.validation}): values for trial, values in trials}
    plan = make_plan((trial for trials in tried.values() for trial in trials), template, device, with_local=False)
    plan.known = (out,)
    searches = [
        Search(one, tuple(of.values()), tuple(map(plan.runs_of, of)), tuple(map(plan.refusal_of, of)))
        for one, of in tried.items()
    ]
    return TuningPlan(grid, rules, tuple(searches), plan)


def list_tuned(grid: Grid, with_local: bool) -> list[Asked]:
    """Return what is tuned: what is asked for, and the local runs that it is compared with."""
    return with_baselines(grid.asked()) if with_local else grid.asked()


def _decide(tuned: Sequence[Asked], rules: Rules) -> Sequence[Asked]:
    """Return those whose trials decide."""
    if rules.on != BASELINE:
        return tuned
    for group in by_table(tuned):
        local = [one.label for one in group if one.is_baseline]
        if len(local) != 1:
            told = ", ".join(local) or "none"
            raise UsageError(f"--tune-on local: needs one local run to choose on, this bench has {told}")
    return [one for one in tuned if one.is_baseline]


def _check(grid: Grid, rules: Rules) -> None:
    if not grid.trials.ranges:
        raise UsageError("--tune: what to try? For example --search train.lr=1e-4..1e-2:log --trials 12, or --sweep")
    for one in grid.methods:
        if SHARE in one.overrides:
            raise UsageError(
                f"{SHARE}={one.overrides[SHARE]}: --tune sets it for the trials; --validation says how much"
            )
    for one in grid.trials.ranges.values():
        if one.key == SHARE or one.key.partition(".")[0] == "scenario":
            raise UsageError(f"--tune: {one.key} is what a choice is made for, not an option to choose")
        if one.key == WEIGHTING:
            raise UsageError(f"--tune: {WEIGHTING} is a part of the method; name each: --algos fedavg+uw,fedavg+dwa")
        of_method = one.key.startswith("algo.") or is_below(one.key, [WEIGHTING_OPTIONS])
        if rules.on == BASELINE and (one.algo not in (None, BASELINE) or of_method):
            raise UsageError(f"--tune-on local: {one.name} is an option of a method that local does not have")


def choose(tuning: TuningPlan) -> list[TunedChoice]:
    """Choose for every method and scenario what was best on validation; the default where no trial was better."""
    return [_choose(search) for search in tuning.searches]


def _choose(search: Search) -> TunedChoice:
    defaults = search.runs[0]
    if not defaults:
        return TunedChoice(search, (), None, reason="refused")
    trials = tuple(
        _judge(overrides, runs, defaults) if refusal is None else _tell_refusal(overrides, refusal)
        for overrides, runs, refusal in zip(search.trials[1:], search.runs[1:], search.refusals[1:])
    )
    if not all(run.finished() for run in defaults):
        return TunedChoice(search, trials, None, reason="its default has no result on validation to compare with")
    best = max((trial for trial in trials if trial.delta_m is not None), key=_rank, default=None)
    if best is None or _rank(best) <= 0:
        return TunedChoice(search, trials, {}, 0.0)
    return TunedChoice(search, trials, best.overrides, best.delta_m)


def _rank(trial: Trial) -> float:
    assert trial.delta_m is not None, trial
    return trial.delta_m


def _tell_refusal(overrides: Mapping[str, Any], refusal: Refusal) -> Trial:
    return Trial(overrides, None, (), (), f"refused: {refusal.reason}")


def _judge(overrides: Mapping[str, Any], runs: Sequence[PlannedRun], defaults: Sequence[PlannedRun]) -> Trial:
    """Return the mean Δm of a trial over its seeds, or why it has none."""
    folders = tuple(str(run.store.folder) for run in runs)
    hashes = tuple(run.config.hash() for run in runs)
    gains = []
    try:
        for run, default in zip(runs, defaults):
            ours, theirs = run.store.summary(), default.store.summary()
            if ours is None or theirs is None:
                return Trial(overrides, None, folders, hashes, "not finished")
            gains.append(judge_trial(ours, theirs))
    except FmtlbenchError as error:
        return Trial(overrides, None, folders, hashes, str(error))
    return Trial(overrides, sum(gains) / len(gains), folders, hashes)


def judge_trial(trial: Summary, default: Summary) -> float:
    """Return Δm in percent of a trial against the default, over the columns of its table."""
    from ..reports.delta import Delta, primary_scores

    splits = [record["split"] for record in trial["scores"] if record["primary"]]
    split = "global" if "global" in splits else next(iter(splits), "")
    (ours, up), (theirs, _) = (primary_scores(run["scores"], split) for run in (trial, default))
    rule = Delta()
    try:
        return rule.change(rule.units(ours), rule.units(theirs), up)
    except MetricError as error:
        raise FmtlbenchError(f"no Δm: {error}") from None


def identify(tuning: TuningPlan, choices: Sequence[TunedChoice]) -> str:
    """Return the id of a tuning: of its rules and of the trials that have a score, so that no two mix in a table."""
    counted = [
        [choice.search.asked.label, [trial.hashes for trial in choice.trials if trial.delta_m is not None]]
        for choice in choices
    ]
    rules = tuning.rules
    return digest({"on": rules.on, "validation": rules.validation, "seeds": list(rules.seeds), "trials": counted})[:8]


def plan_chosen(
    tuning: TuningPlan, choices: Sequence[TunedChoice], template: RunRequest, device: str, with_local: bool = True
) -> tuple[Plan, dict[PlannedRun, TunedChoice]]:
    """Plan the chosen configs with all seeds and all training images, in OUT/tuned-<id>; and whose choice each is.

    Methods without a choice are left out, but those that refuse a scenario are refused here too.
    """
    out = Path(template.out)
    template = replace(template, out=str(out / f"tuned-{identify(tuning, choices)}"))
    found = {choice.search.asked: choice for choice in choices}
    if tuning.rules.on == BASELINE:  # its choice is that of all in its table
        of_table = {(choice.search.asked.preset, choice.search.asked.scenario): choice for choice in choices}
        found = {one: of_table[one.preset, one.scenario] for one in list_tuned(tuning.grid, with_local)}
    chosen = {
        one.with_values(choice.chosen): choice
        for one in list_tuned(tuning.grid, with_local)
        if (choice := found[one]).chosen is not None
    }
    if not chosen:
        reasons = [f"{choice.search.asked.label}: {choice.reason}" for choice in choices]
        raise UsageError(f"--tune: nothing could be chosen: {'; '.join(reasons)}")
    plan = make_plan(chosen, template, device, with_local=False)
    owner = {run.store.folder: choice for one, choice in chosen.items() for run in plan.runs_of(one)}
    for search in (choice.search for choice in choices if choice.chosen is None):
        if (refused := search.refusals[0]) is not None:
            plan.answers[search.asked] = Refusal(search.asked, refused.reason)
    plan.known = (out, tuning.plan.out)
    return plan, {run: owner[run.store.folder] for run in plan.runs}


def record_tuning(
    out: Path, tuning: TuningPlan, choices: Sequence[TunedChoice], owners: Mapping[PlannedRun, TunedChoice]
) -> Path:
    """Write every trial and choice to OUT/.bench/tuning-<id>.json, and into each chosen run how it was chosen."""
    file = out / ".bench" / f"tuning-{identify(tuning, choices)}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, with_format(describe(tuning, choices)))
    for run, choice in owners.items():
        record: Tuning = {**_common(tuning, choices), "trials": choice.finished, "chosen": choice.chosen or {}}
        run.store.files.write_tuning({**record, "delta_m": choice.delta_m, "file": str(file)})
    return file


def describe(tuning: TuningPlan, choices: Sequence[TunedChoice]) -> dict[str, Any]:
    """Return the whole search as plain data: the rules, every trial with its Δm, and the choices."""
    return {
        **_common(tuning, choices),
        "ranges": {name: one.text for name, one in tuning.grid.trials.ranges.items()},
        "search_seed": tuning.grid.trials.seed if tuning.grid.trials.count is not None else None,
        "choices": [
            {
                "name": choice.search.asked.label,
                "scenario": Path(choice.search.asked.scenario).stem,
                "preset": name_preset(choice.search.asked.preset),
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


def _common(tuning: TuningPlan, choices: Sequence[TunedChoice]) -> dict[str, Any]:
    return {
        "tuning": identify(tuning, choices),
        "keys": tuning.grid.trials.keys(),
        "on": tuning.rules.on,
        "budget": tuning.budget,
        "validation": tuning.rules.validation,
        "seeds": list(tuning.rules.seeds),
        "criterion": CRITERION,
    }
