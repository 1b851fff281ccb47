"""How long it will take: seconds per round of finished runs of the same setting. Without any, nothing is claimed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ..base.errors import FmtlbenchError
from ..base.words import say_duration
from ..config.run_config import RunConfig
from ..runs.find import newest_finished
from ..runs.folder import RunFolder
from .plan import Plan, PlannedRun

# Values that hardly change how long a round takes. Validation makes it shorter: the estimate is then a bit too long.
PACELESS = (
    "rounds",
    "data.validation",
    *(
        f"train.{name}"
        for name in ("lr", "weight_decay", "betas", "decay", "min_lr", "warmup_lr", "warmup_epochs", "warmup_rounds")
    ),
    *(f"train.{name}" for name in ("schedule", "loss_weights", "edge_weight", "clip_norm")),
)
MOST_READ = 10  # newest finished runs looked at, per scenario and method


@dataclass(frozen=True)
class Estimate:
    """`seconds` covers the runs with a basis; `unknown` is how many have none."""

    seconds: float
    known: int
    unknown: int

    def text(self) -> str:
        if not self.known:
            return "unknown (no finished run of this setting yet)" if self.unknown else "nothing to do"
        if self.unknown:
            some = f"{self.unknown} of {self.known + self.unknown} runs"
            return f"at least {say_duration(self.seconds)} (unknown for {some})"
        return f"about {say_duration(self.seconds)}"


def learn_pace(plan: Plan) -> Pace:
    """Return the pace of the finished runs that lie where the plan's are to lie."""
    pace = Pace()
    pace.learn_folder(plan)
    return pace


class Pace:
    """Seconds per round by setting and method, from finished runs; start-up of a few seconds per run is not in it."""

    def __init__(self) -> None:
        self.measured: dict[str, dict[str, dict[Path, float]]] = {}

    def learn(self, config: RunConfig, folder: Path) -> None:
        """Take in a finished run; one without its costs teaches nothing."""
        try:
            total = (RunFolder(folder).cost() or {}).get("seconds_total")
        except FmtlbenchError:
            return
        if isinstance(total, (int, float)) and total > 0:
            methods = self.measured.setdefault(_setting(config), {})
            methods.setdefault(config.method, {})[folder] = total / config.federation.rounds

    def learn_folder(self, plan: Plan) -> None:
        """Take in what lies in the output folder: the plan's own finished runs, and others of its scenarios."""
        for run in plan.runs:
            if run.state == "done":
                self.learn(run.config, run.store.folder)
        wanted = {_setting(run.config) for run in plan.missing()}
        groups = {(r.config.scenario.name, f"{r.config.preset}-{r.config.data.source}-s*") for r in plan.missing()}
        for scenario, pattern in groups:
            for method in sorted(m for out in (plan.out, *plan.known) for m in (out / scenario).glob("*/")):
                for folder in newest_finished(method.glob(pattern), MOST_READ):
                    self._learn_other(folder, wanted)

    def _learn_other(self, folder: Path, wanted: set[str]) -> None:
        try:
            config = RunFolder(folder).run_config()
        except FmtlbenchError:  # written by another version, whose pace says little
            return
        if _setting(config) in wanted:
            self.learn(config, folder)

    def seconds(self, run: PlannedRun, whole: bool = False) -> float | None:
        """Return the time for the rounds that are left: by the method's own pace, else by others' of its setting.

        `whole`: for all rounds, as if none were done.
        """
        methods = self.measured.get(_setting(run.config), {})
        own = methods.get(run.config.method)  # weightings that need gradients take longer
        paces = list(own.values()) if own else [fmean(others.values()) for others in methods.values()]
        rounds = run.config.federation.rounds if whole else run.rounds_left
        return rounds * fmean(paces) if paces else None

    def total(self, runs: Iterable[PlannedRun], jobs: int, whole: bool = False) -> Estimate:
        """Estimate the time for `runs`, `jobs` at a time, as if they did not slow each other down."""
        each = [self.seconds(run, whole) for run in runs]
        known = [seconds for seconds in each if seconds is not None]
        spread = max(sum(known) / jobs, max(known)) if known else 0.0
        return Estimate(spread, len(known), len(each) - len(known))


def _setting(config: RunConfig) -> str:
    """Return the setting without values that hardly change how long a round takes."""
    return config.setting().apart_from(PACELESS).key
