"""From a request to the runs it means: their configs, what is already on disk, what no run can be made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError, RefusedError, UsageError, one_line
from ..base.schema import plain
from ..base.words import say_count
from ..config.presets import default_options, name_preset
from ..config.ray_options import SECTION
from ..config.request import RunRequest, name_line
from ..config.resolve import resolve, resolve_options, resolve_without_method
from ..config.run_config import RunConfig
from ..config.setting import EQUAL, WEIGHTING_OPTIONS
from ..engine.admit import admit
from ..runs.absence import REFUSED, Absence, refused_file
from ..runs.code_identity import CodeIdentity, Sources
from ..runs.configured_code import code_of
from ..runs.store import RunStore
from ..runs.summary import describe_weighting
from .asked_runs import BASELINE, Asked, by_table, list_baselines, weigh_by_themselves, without_options

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
    """What is asked for and has no meaning, with the reason."""

    asked: Asked
    reason: str

    @property
    def label(self) -> str:
        return self.asked.label

    @property
    def preset(self) -> str:
        return self.asked.preset

    @property
    def scenario(self) -> str:
        return Path(self.asked.scenario).stem


@dataclass
class Plan:
    """Runs in the order in which they are to be done; `answers` says which of them belong to what is asked for."""

    out: Path
    runs: list[PlannedRun] = field(default_factory=list)
    answers: dict[Asked, list[PlannedRun] | Refusal] = field(default_factory=dict)
    absences: dict[Path, Absence] = field(default_factory=dict)  # file below `out` → what tables say of a refusal
    known: tuple[Path, ...] = ()  # other folders with runs whose pace may be learnt from

    @property
    def refusals(self) -> list[Refusal]:
        return [answer for answer in self.answers.values() if isinstance(answer, Refusal)]

    def runs_of(self, asked: Asked) -> list[PlannedRun]:
        """Return the run of every seed; none where it is refused."""
        answer = self.answers[asked]
        return [] if isinstance(answer, Refusal) else answer

    def refusal_of(self, asked: Asked) -> Refusal | None:
        """Return why it is refused, if it is."""
        answer = self.answers[asked]
        return answer if isinstance(answer, Refusal) else None

    def missing(self) -> list[PlannedRun]:
        return [run for run in self.runs if run.state != "done"]

    def counts(self) -> dict[str, int]:
        states = [run.state for run in self.runs]
        found = {state: states.count(state) for state in STATES}
        return {**found, "refused": sum(len(refusal.asked.seeds) for refusal in self.refusals)}

    def notes(self) -> list[str]:
        """Say what a table of states does not: why pairs are refused, what is damaged, how other code differs."""
        damaged = [f"damaged: {one_line(run.problem)}" for run in self.runs if run.problem]
        return [*(f"refused: {refusal.reason}" for refusal in self.refusals), *damaged, *self.code_changes()]

    def code_changes(self) -> list[str]:
        """Say how other code differs that has made runs of this plan, and what that means; a line for each change."""
        concerned: dict[tuple[str, bool], int] = {}
        for run in self.runs:
            if place := run.store.chosen if run.store.chosen.change else None:
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
        cells = self.cells
        axes = [list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1)]
        upright = len(axes[0]) >= len(axes[1])
        rows, columns = axes if upright else reversed(axes)
        records = []
        for row in rows:
            record = {"name": row}
            for column in columns:
                items = cells.get((row, column) if upright else (column, row), ())
                states = ["refused" if isinstance(item, Refusal) else state_of(item) for item in items]
                record[column] = ", ".join(_count(states, state) for state in dict.fromkeys(states)) or "–"
            records.append(record)
        return records

    @property
    def cells(self) -> dict[tuple[str, str], list[PlannedRun | Refusal]]:
        """Return what belongs to each row and column of the table."""
        several = len({asked.preset for asked in self.answers}) > 1
        cells: dict[tuple[str, str], dict[PlannedRun | Refusal, None]] = {}
        for asked, answer in self.answers.items():
            column = Path(asked.scenario).stem + (f" ({name_preset(asked.preset)})" if several else "")
            items = [answer] if isinstance(answer, Refusal) else answer
            cells.setdefault((asked.label, column), {}).update(dict.fromkeys(items))
        return {key: list(items) for key, items in cells.items()}


def _count(states: list[str], state: str) -> str:
    return state if state == "refused" else f"{states.count(state)} {state}"


def make_plan(asked: Iterable[Asked], template: RunRequest, device: str, with_local: bool = True) -> Plan:
    """Resolve all that is asked for, each once.

    Args:
        asked: Which runs.
        template: How all of them are asked for beside that.
        device: The kind that `template.device` means here: cpu, cuda or mps.
        with_local: Add the local runs that others are compared with.

    Raises:
        UsageError: A mistake, with the line it stands on; or all is refused.
    """
    whole = list(dict.fromkeys(asked))
    plan, sources = Plan(Path(template.out)), Sources()
    # `auto` becomes what was found, so that the runs land where the plan looked.
    template = replace(template, device=device if template.device == "auto" else template.device)
    several = len({one.label for one in whole}) > 1
    found: dict[Path, PlannedRun] = {}

    def enter(one: Asked) -> bool:
        """Take in what is asked for; False if it is refused."""
        config = _resolve(one, template, device, several)
        if isinstance(config, str):
            plan.answers[one] = Refusal(one, config)
            return False
        code = code_of(config, sources)
        runs = [_planned(one, template, replace(config, seed=seed), code) for seed in one.seeds]
        plan.answers[one] = [found.setdefault(run.store.folder, run) for run in runs]
        return True

    plainly = with_local and weigh_by_themselves(whole)
    for group in by_table(whole):
        entered = [one for one in group if enter(one)]
        for one in list_baselines(entered, group, plainly) if with_local else ():
            enter(one)
    # A seed's baseline, then its methods: the first complete table comes as early as it can.
    plan.runs = sorted(found.values(), key=lambda run: (run.config.seed, not _is_baseline(run.config)))
    if whole and not plan.runs:
        raise UsageError(f"nothing to run: {plan.refusals[0].reason}")
    plan.absences = dict(filter(None, (_describe_absence(refusal, device) for refusal in plan.refusals)))
    return plan


def _describe_absence(refusal: Refusal, device: str) -> tuple[Path, Absence] | None:
    """Return what tables say of a refusal, and in which file; None if no table could tell it."""
    asked = refusal.asked
    try:
        overrides = without_options(_values(asked))
        config = resolve_without_method(asked.scenario, asked.preset, device=device, overrides=overrides)
    except UsageError:  # impossible for every method
        return None
    method, chosen = resolve_options(asked.algo, asked.preset, _values(asked))
    options, setting, weighting = plain(chosen), config.setting(), describe_weighting(config)
    defaults = default_options(method, asked.preset)
    absence = Absence.of(REFUSED, refusal.reason, method, options, setting, None, defaults, weighting)
    return refused_file(method.name, options, setting, weighting), absence


def _is_baseline(config: RunConfig) -> bool:
    """Return whether others are compared with a run: a local one that weighs its losses equally."""
    return config.algorithm.name == BASELINE and config.train.weighting == EQUAL


def _values(asked: Asked) -> dict[str, Any]:
    """Return the overrides of the config; those of Ray are no part of it."""
    return {key: value for key, value in asked.overrides.items() if not key.startswith(SECTION)}


def _resolve(asked: Asked, template: RunRequest, device: str, several: bool) -> RunConfig | str:
    """Return the config of every seed, or why the method refuses; a mistake is an error with the line it stands on."""
    replace(template, overrides=asked.overrides).ray_options()
    try:
        config = resolve(asked.algo, asked.scenario, asked.preset, seed=0, device=device, overrides=_values(asked))
        admit(config)
        return config
    except UsageError as error:
        of_method = str(error).startswith("--set algo.") and several
        of_weighting = str(error).startswith(f"--set {WEIGHTING_OPTIONS}.") and several
        message = str(name_line(error, asked.lines))
        if isinstance(error, RefusedError):
            return message
        if of_method:
            own = "--algos NAME[algo.option=value], --sweep NAME:algo.option=range"
            message += f" (for {asked.label}; an option of one method only: {own})"
        if of_weighting:
            own = f"--algos NAME+WEIGHTING[{WEIGHTING_OPTIONS}.option=value]"
            message += f" (for {asked.label}; an option of one weighting only: {own})"
        raise type(error)(message) from None


def _planned(asked: Asked, template: RunRequest, config: RunConfig, code: CodeIdentity) -> PlannedRun:
    """Return one run, with what lies in its folder."""
    request = replace(
        template,
        algo=asked.algo,
        scenario=asked.scenario,
        preset=asked.preset,
        seed=config.seed,
        data_root=template.data_root if config.reads_files else None,
        overrides=asked.overrides,
    )
    store = RunStore(Path(request.out), config, code, request.reuse)
    state, rounds, problem = OTHER_CODE if store.chosen.change else "new", 0, ""
    try:
        if store.summary() is not None:
            state, rounds = "done", config.federation.rounds
        elif rounds := len(store.rounds()):
            state = "resume"
            store.check_records()
    except FmtlbenchError as error:
        state, rounds, problem = DAMAGED, 0, str(error)
    return PlannedRun(asked.label, request, config, store, state, rounds, problem)
