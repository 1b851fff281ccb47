"""A bench from its request to its end, from the command line or from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.errors import UsageError
from ..base.files import check_folder
from ..base.words import parse_duration
from ..config.keep import choose_keep
from ..config.request import RunRequest, override_text, split_keywords
from ..cost.energy import choose_energy
from ..listeners import find_listeners
from .asked_runs import parse_seeds
from .device import Device
from .display import Display
from .effort import Effort, carry_out, check_data_root
from .estimate import Estimate, learn_pace
from .grid import Flags, Grid, read_grid
from .plan import Plan, make_plan
from .serialize import outcome_record, plan_record
from .tuning import Rules, TuningPlan, choose, describe, plan_chosen, plan_tuning, record_tuning
from .workers import Outcome

# What all runs of a bench are asked with; the rest of a request says which run.
CIRCUMSTANCES = (
    "device", "data_root", "out", "reuse", "keep", "energy", "country", "region", "log", "executor", "ray_address",
)  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """What became of a bench, or of its plan alone."""

    plan: Plan  # with a tuning, that of its last part that was reached
    effort: Effort
    outcome: Outcome | None = None  # None: a plan alone
    tuning: TuningPlan | None = None
    search: Mapping[str, Any] = field(default_factory=dict)  # the rules, trials and choices of a tuning
    then: Plan | None = None  # a tuning's plan alone: the runs that follow its trials, with defaults for choices

    @property
    def complete(self) -> bool:
        """Say whether every run of the plan is finished, and every trial of a tuning has its score."""
        if self.outcome is None:
            return not self.plan.missing() and self.tuning is None
        return self.outcome.complete and (self.tuning is None or _is_complete(self.search))

    def table(self) -> list[dict[str, str]]:
        """Return how many runs are in which state, or ended how: a record for each row."""
        if self.outcome is None:
            return self.plan.table(lambda run: run.state)
        records = self.outcome.records
        return self.outcome.plan.table(lambda run: records[run].outcome)

    def estimate_then(self) -> Estimate:
        """Say how long the runs take that follow a tuning's trials."""
        assert self.then is not None
        return learn_pace(self.then).total(self.then.runs, self.effort.jobs, whole=True)

    def record(self) -> dict[str, Any]:
        """Return all of it as plain data, as `--format json` prints it."""
        if self.outcome is not None:
            return outcome_record(self.outcome, {"tuning": self.search} if self.tuning else None)
        record = plan_record(self.plan, self.effort.jobs)
        if self.then is None:
            return record
        seconds = self.estimate_then()
        then = {"runs": len(self.then.runs), "seconds": seconds.seconds if seconds.known else None}
        return {"trials": record, "then": then}


def _is_complete(search: Mapping[str, Any]) -> bool:
    """Return whether every trial of every method has a score, unless the method refuses the scenario."""
    choices = search.get("choices", ())
    return bool(choices) and all(
        one["reason"] == "refused" or one["trials_finished"] == len(one["trials"]) for one in choices
    )


@dataclass(frozen=True)
class BenchRequest:
    """A bench as it is asked for."""

    file: str | Path | None  # of the grid
    flags: Flags  # above the file
    template: RunRequest  # what all runs are asked with beside that
    effort: Effort = field(default_factory=Effort)
    with_local: bool = True  # add the local runs that others are compared with

    def do(
        self, display: Display, tell: Callable[[str], None], dry_run: bool = False, is_listed: bool = False
    ) -> Bench:
        """Do what is missing, or with `dry_run` plan it only; a mistake is told before anything is touched.

        Args:
            display: Told what happens.
            tell: Hears of methods with fewer trials than asked for.
            dry_run: Plan only, touch nothing.
            is_listed: The plan is a list of commands for other machines.
        """
        check_folder(self.template.out, "--out")
        template = self.effort.place(self.template)
        find_listeners(template.log)
        choose_keep(template.keep)
        _check_tuning(self.flags)
        grid = read_grid(self.file, self.flags)
        choose_energy(template.energy, template.country, template.region)  # a wrong country is told at once
        device = self.effort.find_device(template, is_listed)
        if self.flags.tune:
            tuning = plan_tuning(grid, _read_rules(self.flags, grid), template, device.kind, self.with_local)
            plan = tuning.plan
        else:
            tuning, plan = None, make_plan(grid.asked(), template, device.kind, self.with_local)
        check_data_root(plan, template.data_root)
        for line in grid.shortfalls:
            tell(line)
        if tuning is not None:
            return self._tune(tuning, template, device, display, dry_run)
        return Bench(plan, self.effort, None if dry_run else carry_out(plan, self.effort, device, display))

    def _tune(self, tuning: TuningPlan, template: RunRequest, device: Device, display: Display, dry_run: bool) -> Bench:
        """Carry out the trials, choose, and carry out the chosen runs; trials that are stopped are the end."""
        if dry_run:
            # Which values will be chosen is not known yet, but how many runs follow, and about how long they take.
            then = make_plan(tuning.grid.asked(), template, device.kind, self.with_local)
            then.known = (tuning.plan.out,)
            return Bench(tuning.plan, self.effort, None, tuning, then=then)
        tried = carry_out(tuning.plan, self.effort, device, display)
        if tried.stopped:
            return Bench(tuning.plan, self.effort, tried, tuning)
        choices = choose(tuning)
        plan, owners = plan_chosen(tuning, choices, template, device.kind, self.with_local)
        file = record_tuning(Path(template.out), tuning, choices, owners)
        budget = self.effort.budget
        left = replace(self.effort, budget=None if budget is None else max(budget - tried.seconds, 0.0))
        search = {**describe(tuning, choices), "file": str(file)}
        return Bench(plan, self.effort, carry_out(plan, left, device, display), tuning, search)


def _check_tuning(flags: Flags) -> None:
    for name in ("tune_on", "validation", "tune_seeds"):
        if not flags.tune and (value := getattr(flags, name)) is not None:
            raise UsageError(f"--{name.replace('_', '-')} {value}: is for --tune; give that too")


def _read_rules(flags: Flags, grid: Grid) -> Rules:
    """Return how a choice is to be made."""
    seeds = parse_seeds(flags.tune_seeds, "--tune-seeds") if flags.tune_seeds else grid.seeds[:1]
    share = Rules.validation if flags.validation is None else flags.validation
    return Rules(flags.tune_on or "methods", share, seeds)


# -- from Python -------------------------------------------------------------------------------------------------------

Words = str | Path | Iterable[str | Path]


def bench(
    grid: str | Path | None = None,
    *,
    algos: Words | None = None,
    scenarios: Words | None = None,
    seeds: str | int | Iterable[int] | None = None,
    preset: Words | None = None,
    rounds: int | None = None,
    sweep: Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    trials: int | None = None,
    search_seed: int | None = None,
    tune: bool = False,
    tune_on: str | None = None,
    validation: float | None = None,
    tune_seeds: str | int | Iterable[int] | None = None,
    local: bool = True,
    jobs: int = 1,
    budget: str | float | None = None,
    retries: int = 1,
    hosts: str = "here",
    cpus_per_job: float | None = None,
    gpus_per_job: float | None = None,
    dry_run: bool = False,
    progress: Display | None = None,
    **asked: Any,
) -> Bench:
    """Do what is missing of a grid of methods, scenarios and seeds, each run in a process of its own.

    Finished runs are reused and unfinished ones go on: the same call again does what is left. Ctrl-C stops the runs at
    work after their last complete round and returns.

        >>> import fmtlbench
        >>> bench = fmtlbench.bench(algos=["local", "fedavg"], scenarios="st_mt_1", seeds=range(3), dry_run=True)
        >>> bench.table()
        [{'name': 'local', 'st_mt_1': '3 new'}, {'name': 'fedavg', 'st_mt_1': '3 new'}]
        >>> [run.config.seed for run in bench.plan.missing() if run.label == "fedavg"]
        [0, 1, 2]
        >>> bench.complete
        False

    Args:
        grid: A grid file (docs/bench.md); what is given beside it takes the place of its entries.
        algos: Names, .py files, or "all"; "fedhca2[algo.c=0.2]" has options, "fedavg+uw" a weighting of losses.
        scenarios: Names, .yml files, or "all".
        seeds: 3, "0-4" or numbers; by default 0.
        preset: How big: one or several, names or .yml files.
        rounds: Instead of the preset's number.
        sweep: Config value → what to try of it, "1e-3..1e-1:log5" or a list; all combinations.
        search: Config value → what to draw from, likewise.
        trials: How many are drawn of each method.
        search_seed: Of the draws.
        tune: Choose by the trials, on images held out of training, then run the choice on the test images.
        tune_on: Whose trials decide: "methods", each its own, or "local".
        validation: The share of images that is held out for that.
        tune_seeds: Of the trials; by default the first of the seeds.
        local: Add the local runs that others are compared with.
        jobs: Runs at the same time.
        budget: "2h", or seconds, after which nothing is started and what runs is stopped.
        retries: How often a failed run is tried again.
        hosts: Where whole runs are: "here", or "ray", on the machines of a Ray cluster.
        cpus_per_job: That a run needs of that cluster.
        gpus_per_job: Likewise with device="cuda".
        dry_run: Plan only; touch nothing.
        progress: Told what happens: `Live()`, `Lines()` of `fmtlbench.bench.display` or your own; by default nobody.
        **asked: `device`, `data_root`, `out`, `reuse`, `keep`, `energy`, `country`, `region`, `log`, `executor` and
            `ray_address`, as `fmtlbench.config.request.RunRequest` explains them. Any other is a config value of all
            runs by dotted name, for example `**{"train.lr": 1e-3}`.

    Raises:
        UsageError: The request makes no sense; nothing was touched.
        FmtlbenchError: Runs cannot be started. A run that fails is no error: the outcome says so.
    """
    fields, overrides = split_keywords(asked)
    for name in fields.keys() - set(CIRCUMSTANCES):
        raise UsageError(f"{name}={fields[name]}: is for one run; a bench has algos, scenarios and seeds")
    address = fields.pop("ray_address", None)
    seconds = parse_duration(budget, "--budget") if isinstance(budget, str) else budget
    effort = Effort(jobs, seconds, retries, hosts, address, cpus_per_job, gpus_per_job)
    flags = Flags(
        _join(algos),
        _join(scenarios),
        _join(seeds),
        _join(preset),
        rounds,
        overrides,
        _write_ranges(sweep),
        _write_ranges(search),
        trials,
        search_seed,
        tune,
        tune_on,
        validation,
        _join(tune_seeds),
    )
    display = Display() if progress is None else progress
    request = BenchRequest(grid, flags, RunRequest("", "", **fields), effort, local)
    return request.do(display, display.note, dry_run)


def _join(given: Words | int | Iterable[int] | None) -> str | None:
    """Return names or seeds as a flag has them, with commas between them."""
    if given is None or isinstance(given, str):
        return given
    return ",".join(map(str, given)) if isinstance(given, Iterable) else str(given)


def _write_ranges(given: Mapping[str, Any] | None) -> list[str]:
    """Return ranges as a flag has them: `train.lr=1e-3,1e-2`."""
    texts = {key: of if isinstance(of, str) else ",".join(map(override_text, of)) for key, of in (given or {}).items()}
    return [f"{key}={text}" for key, text in texts.items()]
