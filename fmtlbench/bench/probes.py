"""What `fmtlbench probe` runs: methods and those they are compared with, on probes, at every value of a family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base.errors import FmtlbenchError, UsageError, unknown
from ..config.request import RunRequest
from ..config.setting import WEIGHTING
from ..reports.probes import Answers, Candidate, Finished
from ..scenarios import ROLES, Scenario, load_scenario, probe_names
from ..weightings import WEIGHTINGS
from .asked_runs import Asked, weigh_by_themselves
from .grid import Flags, read_grid
from .plan import Plan, make_plan
from .ranges import split


@dataclass(frozen=True)
class ProbePart:
    """One probe at one value of its family's parameter (None: it has none)."""

    scenario: Scenario
    value: float | None
    place: str  # the scenario, by name or path
    values: Mapping[str, Any]  # overrides that its runs have in common

    def asked_in(self, plan: Plan) -> list[Asked]:
        """Return what a plan asks for here, with the local runs that it added."""
        return [
            one for one in plan.answers if one.scenario == self.place and self.values.items() <= one.overrides.items()
        ]


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
) -> tuple[list[Asked], list[ProbePart], Plan]:
    """Return the methods asked for, each probe's part, and the plan; `template`, `device` as for `make_plan`."""
    grids = [read_grid(None, Flags(algos, name, seeds, preset, None, overrides)) for name in probes]
    if weigh_by_themselves(grids[0].asked()):  # also of local, which all are compared with
        raise UsageError(f"{WEIGHTING} is set for all; it is a part of the method here: --algos fedavg+uw")
    parts, asked = [], []
    for name, grid in zip(probes, grids):
        scenario = load_scenario(name)
        others = [e.than for e in scenario.probe.expect if e.measure == "gain"]
        beside = [Asked(other, other, overrides=overrides, seeds=grid.seeds) for other in others]
        methods = tuple({one.label: one for one in (*grid.methods, *beside)}.values())
        for value, own in scenario.members().items():
            parts.append(ProbePart(scenario, value, name, {key: overrides.get(key, own[key]) for key in own}))
            whole = replace(grid, methods=methods).asked()
            asked += [replace(one, overrides={**own, **one.overrides}) for one in whole]
    return list(grids[0].methods), parts, make_plan(asked, template, device)


def collect_answers(parts: Sequence[ProbePart], plan: Plan, tell: Callable[[str], None]) -> list[Answers]:
    """Collect the finished runs of every probe; `tell` hears of those that cannot be read."""
    found: dict[str, Answers] = {}
    for part in parts:
        answers = found.setdefault(part.scenario.name, Answers(part.scenario, {}, {}))
        for asked in part.asked_in(plan):
            answers.runs[asked.label, part.value] = finished = {}
            for run in plan.runs_of(asked):
                if run.finished():
                    try:
                        finished[run.config.seed] = Finished(run.store.summary(), run.store.rounds())
                    except FmtlbenchError as error:
                        tell(f"left out: {error}")
            if refusal := plan.refusal_of(asked):
                answers.refused[asked.label] = refusal.reason
    return list(found.values())


def list_candidates(methods: Sequence[Asked]) -> list[Candidate]:
    """Return the methods that were asked for, with the roles that they name."""
    candidates = []
    for asked in methods:
        method = asked.method
        for role in method.roles:
            if role not in ROLES:
                raise unknown("role", role, ROLES, f"{method.name}.roles")
        weighting = asked.overrides.get(WEIGHTING)
        title = method.title + (f"+{WEIGHTINGS.resolve(weighting, '--algos').title}" if weighting else "")
        options = asked.label.partition("[")[1:]
        candidates.append(Candidate(asked.label, title + "".join(options), tuple(method.roles)))
    return candidates
