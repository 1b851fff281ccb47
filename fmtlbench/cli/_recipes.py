"""From a recipe to runs and back: what a table or figure of a paper asks for, planned; what was found, drawn."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import FmtlbenchError, unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..bench.plan import Plan, PlannedRun, Refusal
    from ..bench.wanted import Wanted, WantedPlan
    from ..config.request import RunRequest
    from ..reports.claims import Verdict
    from ..reports.collect import Collection, RunRecord
    from ..reports.recipes import Asked, Recipe
    from ..reports.reproduced import Made, Reproduced


SINGLE = ("rounds", "hyperweights", "grouping", "updates")  # figures in which a label means one setting


@dataclass(frozen=True)
class Way:
    """How recipes are made: with which preset (None: each paper's own), seeds and values, and where runs lie."""

    preset: str | None
    seeds: tuple[int, ...]
    overrides: Mapping[str, Any]
    public_code: bool
    template: RunRequest
    device: str


@dataclass(frozen=True)
class Planned:
    """A recipe with its runs. What the preset has no form of is `lacking`, with the reason."""

    recipe: Recipe
    preset: str
    wanted: Mapping[Asked, Wanted]
    lacking: Mapping[Asked, str]
    whole: WantedPlan  # of all recipes that are planned together
    way: Way

    @property
    def name(self) -> str:
        """Return what its files are called: those of methods as public code runs them are others."""
        return self.recipe.name + ("-public-code" if self.way.public_code else "")

    def runs(self, asked: Asked) -> Mapping[int, PlannedRun]:
        """Return the runs of every seed; none where there can be none."""
        return self.whole.runs.get(self.wanted[asked].place, {}) if asked in self.wanted else {}

    def refusal(self, asked: Asked) -> Refusal | None:
        """Return why the method refuses, if it does."""
        return self.whole.refused.get(self.wanted[asked].place) if asked in self.wanted else None

    def states(self) -> list[str]:
        """Return the state of every run: those of a plan, `unusable` and, for every seed of a method, `refused`."""
        runs = {id(run): run for asked in self.wanted for run in self.runs(asked).values()}
        refused = sum(self.refusal(asked) is not None for asked in self.wanted)
        return [*map(self._state, runs.values()), *["refused"] * refused * len(self.way.seeds)]

    def _state(self, run: PlannedRun) -> str:
        from ..bench.plan import DAMAGED

        lacks = run.state == "done" and not _has_files(self.recipe, run.store.folder)
        return "unusable" if lacks or run.state == DAMAGED else run.state

    def remarks(self) -> list[str]:
        """Say what else is not as a reader of the table would think."""
        from ..reports.recipes import stand_ins

        told = self.recipe.say_public_code() if self.way.public_code else ""
        asked = {a.overrides.get("model.backbone"): one for a, one in self.wanted.items()}
        small = [
            f"{one.overrides['model.backbone']} stands for {name}"
            for name, one in asked.items()
            if name in stand_ins() and one.overrides["model.backbone"] != name
        ]
        return [note for note in (told, "; ".join(small)) if note]


def choose_recipes(names: Sequence[str]) -> list[Recipe]:
    """Return the recipes of these names; `all` means every one, a paper's name all of that paper."""
    from ..reports.recipes import load_recipe, recipe_names

    chosen: dict[str, None] = {}
    papers = {load_recipe(name).paper for name in recipe_names()}
    for word in names:
        if word == "all" or word in papers:
            chosen |= dict.fromkeys(n for n in recipe_names() if word in ("all", load_recipe(n).paper))
        elif word in recipe_names():
            chosen[word] = None
        else:
            raise unknown("recipe", word, ["all", *sorted(papers), *recipe_names()])
    return [load_recipe(name) for name in chosen]


def plan_recipes(recipes: Sequence[Recipe], way: Way) -> tuple[list[Planned], Plan]:
    """Plan the runs that recipes need, those that several of them share once; touch nothing."""
    from ..bench.plan import join_plans
    from ..bench.wanted import plan_wanted

    by_preset: dict[str, dict[str, tuple[Recipe, dict[Asked, Wanted], dict[Asked, str]]]] = {}
    for recipe in recipes:
        found: dict[Asked, Wanted] = {}
        lacking: dict[Asked, str] = {}
        preset = way.preset or recipe.preset
        for asked in recipe.wanted:
            one = _as_run(recipe, asked, preset, way.public_code)
            if isinstance(one, str):
                lacking[asked] = one
            else:
                found[asked] = one
        by_preset.setdefault(preset, {})[recipe.name] = (recipe, found, lacking)
    planned: dict[str, Planned] = {}
    plans = []
    for preset, members in by_preset.items():
        unique = {one.place: one for _, found, _ in members.values() for one in found.values()}
        whole = plan_wanted(list(unique.values()), way.seeds, preset, way.overrides, way.template, way.device)
        plans.append(whole.plan)
        for recipe, found, lacking in members.values():
            planned[recipe.name] = Planned(recipe, preset, found, lacking, whole, way)
    return [planned[recipe.name] for recipe in recipes], join_plans(plans)


def _as_run(recipe: Recipe, asked: Asked, preset: str, public_code: bool) -> Wanted | str:
    """Return what is run for what a recipe asks; a text says why the preset has no form of it."""
    from ..bench.grid import extend_label
    from ..bench.wanted import Wanted, carry_over
    from ..reports.recipes import stand_ins

    shown = recipe.as_public_code(asked) if public_code else asked
    values = {**{f"algo.{key}": value for key, value in shown.options.items()}, **shown.overrides}
    algo = _methods_by_title()[shown.method]
    one = carry_over(Wanted("", algo, asked.scenario, values), recipe.preset, preset, stand_ins())
    if isinstance(one, str):
        return one
    told = {key: one.overrides[key] for key in shown.overrides if key in one.overrides}
    return replace(one, name=extend_label(shown.label, told))


@cache
def _methods_by_title() -> dict[str, str]:
    from ._installed import method_titles

    return {title: name for name, title in method_titles().items()}


# -- what was found ----------------------------------------------------------------------------------------------------


def gather(planned: Planned) -> tuple[dict[Asked, Made], Collection]:
    """Return what became of the runs that a recipe asks for, and the finished ones, labelled as the paper does."""
    from ..reports.collect import collect, empty_collection, relabel
    from ..reports.reproduced import Made

    finished: dict[Path, str] = {}  # folder → label
    found: dict[Asked, dict[int, Path]] = {}
    for asked in planned.recipe.wanted:
        done = {seed: run for seed, run in planned.runs(asked).items() if run.finished()}
        found[asked] = {seed: run.store.folder.resolve() for seed, run in done.items()}
        finished |= dict.fromkeys(found[asked].values(), asked.full_label)
    found_runs = collect([*finished], _files_read(planned.recipe)) if finished else empty_collection()
    collection = relabel(found_runs, finished)
    for problem in collection.problems:
        print(f"left out: {problem}", file=sys.stderr)
    records = {run.folder.resolve(): run for run in collection.runs}
    made = {}
    for asked, folders in found.items():
        runs = {seed: records[folder] for seed, folder in folders.items() if folder in records}
        word, why = ("", "") if runs else ("", "its files are damaged") if folders else _say_absence(planned, asked)
        made[asked] = Made(runs, word, why, planned.wanted[asked].overrides if asked in planned.wanted else {})
    return made, collection


def _files_read(recipe: Recipe) -> tuple[str, ...]:
    """Return what a recipe reads of a run beside its summary."""
    from ..reports.recipes import COST

    if recipe.kind == COST:
        return ("rounds", "timing", "cost")
    if recipe.is_figure:
        from ..reports.plots import files_read

        return files_read(recipe.kind)
    return ()


def _has_files(recipe: Recipe, folder: Path) -> bool:
    """Whether a finished run keeps what a recipe reads of it."""
    from ..runs.folder import RunFolder

    files = RunFolder(folder)
    if recipe.kind == "panel":
        return files.has_networks() or files.checkpoints.is_dir()
    return all(getattr(files, name)() for name in _files_read(recipe))


def _say_absence(planned: Planned, asked: Asked) -> tuple[str, str]:
    """Return the word in the place of a value, and the reason."""
    from ..runs.absence import failed_file

    if asked in planned.lacking:
        return "", planned.lacking[asked]
    if refusal := planned.refusal(asked):
        return "NULL", f"refused: {refusal.reason}"
    if any(failed_file(run.store.folder).exists() for run in planned.runs(asked).values()):
        return "failed", "its runs failed; their logs say why"
    return "", "not run yet"


def make_table(planned: Planned) -> Reproduced:
    """Make a recipe's table of what is finished."""
    from ..reports.recipes import NETWORKS
    from ..reports.reproduced import count_table, reproduce_table

    if planned.recipe.kind == NETWORKS:
        return count_table(planned.recipe, _count_networks(planned), planned.preset)
    made, collection = gather(planned)
    return reproduce_table(planned.recipe, made, collection, planned.remarks())


def _count_networks(planned: Planned) -> list[dict[str, float]]:
    """Return the values of a table of networks, row by row."""
    from ..bench.wanted import Wanted, carry_over
    from ..config.resolve import resolve_without_method
    from ..reports.recipes import stand_ins
    from ._show_network import describe_networks

    recipe = planned.recipe
    table = recipe.table
    assert table is not None
    rows = []
    for row in table.rows:
        asked = recipe.row(row)
        one = carry_over(Wanted("", "", asked.scenario, asked.overrides), recipe.preset, planned.preset, stand_ins())
        if isinstance(one, str):
            rows.append({})
            continue
        overrides = {**one.overrides, **planned.way.overrides}
        config = resolve_without_method(asked.scenario, planned.preset, overrides=overrides)
        (network,) = describe_networks(config)
        parts, operations = network["parameters"], network["table1_operations_per_image"]
        values = {name: count / 1e6 for name, count in parts.items()}
        values["decoder"] += values.pop("head", 0.0)  # the paper counts heads with decoders
        values |= {"total": sum(parts.values()) / 1e6, "operations": operations["total"] / 1e9}
        if "per_task" in operations:
            values["per_task"] = operations["per_task"] / 1e9
        known = recipe.entry["values"].items()
        rows.append({column: values[name] for column, name in known if name in values})
    return rows


def judge_runs(planned: Sequence[Planned]) -> list[tuple[Verdict, Verdict]]:
    """Return the verdicts on the claims about these recipes: on the printed numbers, and on our runs."""
    from ..reports.claims import EvidenceOfRuns, judge, judge_printed, load_claims

    asked = {one.recipe.name: one for one in planned}
    figures = {(one.recipe.paper, one.recipe.place) for one in planned if one.recipe.is_figure}
    claims = [
        claim
        for claim in load_claims().values()
        if set(claim.tables) & asked.keys() or (claim.entry.paper, claim.figure) in figures
    ]
    tables = {name: make_table(one).evidence() for name, one in asked.items() if one.recipe.table is not None}
    runs: dict[Path, RunRecord] = {}
    for one in planned:
        if one.recipe.is_figure and one.recipe.kind in SINGLE:
            runs |= {run.folder: run for run in gather(one)[1].runs}
    printed = {verdict.claim.name: verdict for verdict in judge_printed()}
    return [(printed[c.name], judge(c, tables, EvidenceOfRuns(list(runs.values())))) for c in claims]


# -- figures -----------------------------------------------------------------------------------------------------------


def make_figure(planned: Planned, args: argparse.Namespace, notes: list[str]) -> Figure:
    """Draw a recipe's figure of what is finished; what a reader must know is added to `notes`."""
    from ..reports import plots
    from ..reports.reproduced import figure_notes
    from ..reports.settings import merge_settings

    recipe = planned.recipe
    options = recipe.entry.get("options", {})
    notes += [*recipe.notes, *planned.remarks()]
    if recipe.kind == "scenarios":
        notes += [f"{recipe.source} · images as in preset {planned.preset}, before any are held out"]
        return _draw_scenarios(recipe, planned.preset, args)
    made, collection = gather(planned)
    lost = [f"{asked.label} of {asked.scenario}: {made[asked].why}" for asked in recipe.lines if not made[asked].runs]
    if len(lost) == len(recipe.lines):
        raise FmtlbenchError(f"no finished run to draw ({lost[0]})")
    notes += [f"left out: {line}" for line in lost]
    notes += figure_notes(recipe, made)
    if recipe.kind == "panel":
        return _draw_panel(recipe, made, options, args)
    if recipe.entry.get("axes"):
        collection = merge_settings(collection, recipe.entry["axes"])
    asked = plots.Options(**options, delta=_rule(recipe, made))
    return plots.make_figure(recipe.kind, collection, asked, notes)


def _rule(recipe: Recipe, made: Mapping[Asked, Made]) -> Any:
    """Return which Δm a figure shows: against the paper's target run where it has one."""
    from ..reports.delta import Delta, Reference

    target = recipe.target if recipe.entry.get("delta") else None
    if target is None or not made[target].runs:
        return None
    return Delta(reference=Reference(dict(made[target].runs), f"{target.label} of {target.scenario}"))


def _draw_scenarios(recipe: Recipe, preset: str, args: argparse.Namespace) -> Figure:
    from ..base.words import dataset_title
    from ..config.resolve import resolve_without_method
    from ..reports.distribution import distributions
    from ._request import overrides_of
    from ._show_scenario import describe_clients

    panels, titles = {}, {}
    for name in recipe.entry["scenarios"]:
        config = resolve_without_method(name, preset, overrides=overrides_of(args))
        panels[name] = describe_clients(config, None)
        titles |= {c["dataset"]: dataset_title(c["dataset"], config.data.source) for c in panels[name]}
    return distributions(panels, titles)


def _draw_panel(
    recipe: Recipe, made: Mapping[Asked, Made], options: Mapping[str, Any], args: argparse.Namespace
) -> Figure:
    """Draw predictions of the lowest seed's runs beside the truth."""
    from ..inference.stored_run import StoredRun
    from ._panel import draw_runs

    shown = {asked: made[asked].runs for asked in recipe.lines if made[asked].runs}
    folders = {asked.label: runs[min(runs)].folder for asked, runs in shown.items()}
    runs = {label: StoredRun(folder) for label, folder in folders.items()}
    clients = [p.id for p in next(iter(runs.values())).config.scenario.parties() if p.dataset == options["dataset"]]
    return draw_runs(runs, args.data_root, args.device, clients, options["image"])
