"""From a recipe to runs and back: what a table or figure of a paper asks for, planned; what was found, drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..algorithms import ALGORITHMS
from ..base.errors import FmtlbenchError, unknown
from ..base.words import dataset_title
from ..config.presets import preset_options, read_preset
from ..config.request import RunRequest
from ..config.resolve import resolve_without_method
from ..reports import plots
from ..reports.collect import Collection, RunRecord, collect, empty_collection, relabel
from ..reports.delta import Delta, Reference
from ..reports.papers.claims import Verdict, judge, judge_printed, load_claims
from ..reports.papers.recipes import COST, NETWORKS, Recipe, Wanted, load_recipe, recipe_names, stand_ins
from ..reports.papers.reproduced import Made, Reproduced, count_table, figure_notes, reproduce_table
from ..reports.papers.run_checks import EvidenceOfRuns
from ..reports.settings import merge_settings
from ..runs.absence import failed_file
from ..runs.folder import RunFolder
from .asked_runs import Asked, extend_label
from .clients import describe_clients, describe_networks
from .display import tell_on_stderr
from .plan import DAMAGED, Plan, PlannedRun, Refusal, make_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..inference.stored_run import StoredRun

Panel = Callable[["Mapping[str, StoredRun]", Sequence[str], int], "Figure"]  # runs by label, clients, image

SINGLE = ("rounds", "hyperweights", "grouping", "updates")  # figures in which a label means one setting


@dataclass(frozen=True)
class Planned:
    """A recipe with its runs."""

    recipe: Recipe
    preset: str
    asked: Mapping[Wanted, Asked | str]  # a text says why the preset has no form of it
    overrides: Mapping[str, Any]  # of all runs, above the recipe's own
    plan: Plan  # of all recipes that are planned together
    public_code: bool = False  # methods are run as the public code does

    @property
    def name(self) -> str:
        """Return what its files are called: those of methods as public code runs them are others."""
        return self.recipe.name + ("-public-code" if self.public_code else "")

    @property
    def lacking(self) -> dict[Wanted, str]:
        """Return what the preset has no form of, with the reason."""
        return {wanted: why for wanted, why in self.asked.items() if isinstance(why, str)}

    def runs(self, wanted: Wanted) -> Mapping[int, PlannedRun]:
        """Return the runs of every seed; none where there can be none."""
        asked = self.asked[wanted]
        return {} if isinstance(asked, str) else {run.config.seed: run for run in self.plan.runs_of(asked)}

    def refusal(self, wanted: Wanted) -> Refusal | None:
        """Return why the method refuses, if it does."""
        asked = self.asked[wanted]
        return None if isinstance(asked, str) else self.plan.refusal_of(asked)

    def states(self) -> list[str]:
        """Return the state of every run: those of a plan, `unusable` and, for every seed of a method, `refused`."""
        runs = {id(run): run for wanted in self.asked for run in self.runs(wanted).values()}
        refused = sum(len(refusal.asked.seeds) for refusal in map(self.refusal, self.asked) if refusal is not None)
        return [*map(self._state, runs.values()), *["refused"] * refused]

    def _state(self, run: PlannedRun) -> str:
        lacks = run.state == "done" and not _has_files(self.recipe, run.store.folder)
        return "unusable" if lacks or run.state == DAMAGED else run.state

    def remarks(self) -> list[str]:
        """Say what else is not as a reader of the table would think."""
        told = self.recipe.say_public_code() if self.public_code else ""
        ran = {w.overrides.get("model.backbone"): one for w, one in self.asked.items() if isinstance(one, Asked)}
        backbones = {name: one.overrides["model.backbone"] for name, one in ran.items() if name in stand_ins()}
        small = [f"{used} stands for {name}" for name, used in backbones.items() if used != name]
        return [note for note in (told, "; ".join(small)) if note]


def choose_recipes(names: Sequence[str]) -> list[Recipe]:
    """Return the recipes of these names; `all` means every one, a paper's name all of that paper."""
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


def plan_recipes(
    recipes: Sequence[Recipe],
    template: RunRequest,
    device: str,
    *,
    preset: str | None = None,
    seeds: tuple[int, ...] = (0,),
    overrides: Mapping[str, Any] | None = None,
    public_code: bool = False,
) -> list[Planned]:
    """Plan the runs that recipes need, those that several of them share once; touch nothing.

    Args:
        recipes: What to make.
        template: How all runs are asked for beside that.
        device: The kind that `template.device` means here.
        preset: Instead of each paper's own.
        seeds: Of every run.
        overrides: Of every run, above the recipes' own.
        public_code: Run methods as the public code does that made the paper's numbers.
    """
    above = dict(overrides or {})
    found = []
    for recipe in recipes:
        size = preset or recipe.preset
        found.append((recipe, size, {one: _ask(recipe, one, size, seeds, above, public_code) for one in recipe.wanted}))
    everything = [one for _, _, asked in found for one in asked.values() if isinstance(one, Asked)]
    plan = make_plan(everything, template, device, with_local=False)
    return [Planned(recipe, size, asked, above, plan, public_code) for recipe, size, asked in found]


def _ask(
    recipe: Recipe, wanted: Wanted, preset: str, seeds: tuple[int, ...], above: Mapping[str, Any], public_code: bool
) -> Asked | str:
    """Return what is run for what a recipe wants; a text says why the preset has no form of it."""
    shown = recipe.as_public_code(wanted) if public_code else wanted
    values = {**{f"algo.{key}": value for key, value in shown.options.items()}, **shown.overrides}
    algo = _methods_by_title()[shown.method]
    one = carry_over(Asked("", algo, wanted.scenario, recipe.preset, values, seeds), preset)
    if isinstance(one, str):
        return one
    told = {key: one.overrides[key] for key in shown.overrides if key in one.overrides}
    own = tuple(one.overrides)  # tables need not say of these that they are not the preset's
    return replace(one, label=extend_label(shown.label, told), overrides={**one.overrides, **above}, own=own)


def carry_over(asked: Asked, preset: str) -> Asked | str:
    """Return the same for another preset than a paper's own; a text says why that preset has no form of it.

    The other preset decides data, network and schedule. What the paper's says of methods, of options of networks and of
    metrics goes along, since that is what is compared. Small backbones stand in for the paper's: where the preset has
    one of them, they take the places of the paper's.
    """
    own = asked.preset
    if preset == own:
        return asked
    overrides = dict(asked.overrides)
    backbone = overrides.get("model.backbone")
    small = set(stand_ins().values())
    if backbone is not None and read_preset(preset).get("model", {}).get("backbone") in small:
        if backbone not in stand_ins() and backbone not in small:
            return f"{backbone} has no form as small as the networks of preset {preset}"
        overrides["model.backbone"] = stand_ins().get(backbone, backbone)
        overrides.pop("model.drop_path", None)  # it belongs to the larger one
    carried = {f"algo.{key}": value for key, value in preset_options(own).get(asked.algo, {}).items()}
    network = preset_options(own, "architectures").get(overrides.get("model.architecture", ""), {})
    carried |= {f"model.options.{key}": value for key, value in network.items()}
    metrics = read_preset(own).get("evaluation", {}).get("metrics", {})
    carried |= {f"evaluation.metrics.{task}": metric for task, metric in metrics.items()}
    return replace(asked, preset=preset, overrides={**carried, **overrides})


@cache
def _methods_by_title() -> dict[str, str]:
    return {ALGORITHMS.resolve(name).title: name for name in ALGORITHMS}


# -- what was found ----------------------------------------------------------------------------------------------------


def gather(planned: Planned, tell: Callable[[str], None] = tell_on_stderr) -> tuple[dict[Wanted, Made], Collection]:
    """Return what became of the runs that a recipe wants, and the finished ones, labelled as the paper does.

    `tell` hears of runs whose files are damaged.
    """
    finished: dict[Path, str] = {}  # folder → label
    found: dict[Wanted, dict[int, Path]] = {}
    for wanted in planned.recipe.wanted:
        done = {seed: run for seed, run in planned.runs(wanted).items() if run.finished()}
        found[wanted] = {seed: run.store.folder.resolve() for seed, run in done.items()}
        finished |= dict.fromkeys(found[wanted].values(), wanted.full_label)
    found_runs = collect([*finished], _files_read(planned.recipe)) if finished else empty_collection()
    collection = relabel(found_runs, finished)
    for problem in collection.problems:
        tell(f"left out: {problem}")
    records = {run.folder.resolve(): run for run in collection.runs}
    made = {}
    for wanted, folders in found.items():
        runs = {seed: records[folder] for seed, folder in folders.items() if folder in records}
        word, why = ("", "") if runs else ("", "its files are damaged") if folders else _say_absence(planned, wanted)
        asked = planned.asked[wanted]
        made[wanted] = Made(runs, word, why, () if isinstance(asked, str) else asked.own)
    return made, collection


def _files_read(recipe: Recipe) -> tuple[str, ...]:
    """Return what a recipe reads of a run beside its summary."""
    if recipe.kind == COST:
        return ("rounds", "timing", "cost")
    if recipe.is_figure and recipe.kind in plots.find_kinds():
        return plots.files_read(recipe.kind, plots.Options())
    return ()


def _has_files(recipe: Recipe, folder: Path) -> bool:
    """Whether a finished run keeps what a recipe reads of it."""
    files = RunFolder(folder)
    if recipe.kind == "panel":
        return files.has_networks() or files.checkpoints.is_dir()
    return all(getattr(files, name)() for name in _files_read(recipe))


def _say_absence(planned: Planned, wanted: Wanted) -> tuple[str, str]:
    """Return the word in the place of a value, and the reason."""
    if wanted in planned.lacking:
        return "", planned.lacking[wanted]
    if refusal := planned.refusal(wanted):
        return "NULL", f"refused: {refusal.reason}"
    if any(failed_file(run.store.folder).exists() for run in planned.runs(wanted).values()):
        return "failed", "its runs failed; their logs say why"
    return "", "not run yet"


def make_table(planned: Planned) -> Reproduced:
    """Make a recipe's table of what is finished."""
    if planned.recipe.kind == NETWORKS:
        return count_table(planned.recipe, _count_networks(planned), planned.preset)
    made, collection = gather(planned)
    return reproduce_table(planned.recipe, made, collection, planned.remarks())


def _count_networks(planned: Planned) -> list[dict[str, float]]:
    """Return the values of a table of networks, row by row."""
    recipe = planned.recipe
    table = recipe.table
    assert table is not None
    rows = []
    for row in table.rows:
        wanted = recipe.row(row)
        one = carry_over(Asked("", "", wanted.scenario, recipe.preset, wanted.overrides), planned.preset)
        if isinstance(one, str):
            rows.append({})
            continue
        overrides = {**one.overrides, **planned.overrides}
        config = resolve_without_method(wanted.scenario, planned.preset, overrides=overrides)
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
    asked = {one.recipe.name: one for one in planned}
    figures = {(one.recipe.paper, one.recipe.place) for one in planned if one.recipe.is_figure}
    claims = [
        claim
        for claim in load_claims().values()
        if set(claim.tables) & asked.keys() or (claim.entry.paper, claim.figure) in figures
    ]
    tables = {name: make_table(one) for name, one in asked.items() if one.recipe.table is not None}
    runs: dict[Path, RunRecord] = {}
    for one in planned:
        if one.recipe.is_figure and one.recipe.kind in SINGLE:
            runs |= {run.folder: run for run in gather(one)[1].runs}
    printed = {verdict.claim.name: verdict for verdict in judge_printed()}
    return [(printed[c.name], judge(c, tables, EvidenceOfRuns(list(runs.values())))) for c in claims]


# -- figures -----------------------------------------------------------------------------------------------------------


def make_figure(planned: Planned, notes: list[str], draw_panel: Panel) -> Figure:
    """Draw a recipe's figure of what is finished; what a reader must know is added to `notes`.

    `draw_panel` draws what runs predict on an image, beside the truth.
    """
    recipe = planned.recipe
    options = recipe.entry.get("options", {})
    notes += [*recipe.notes, *planned.remarks()]
    if recipe.kind == "scenarios":
        notes += [f"{recipe.source} · images as in preset {planned.preset}, before any are held out"]
        return _draw_scenarios(planned)
    made, collection = gather(planned)
    lost = [f"{one.label} of {one.scenario}: {made[one].why}" for one in recipe.lines if not made[one].runs]
    if len(lost) == len(recipe.lines):
        raise FmtlbenchError(f"no finished run to draw ({lost[0]})")
    notes += [f"left out: {line}" for line in lost]
    notes += figure_notes(recipe, made)
    if recipe.kind == "panel":
        return _draw_panel(recipe, made, options, draw_panel)
    if recipe.entry.get("axes"):
        collection = merge_settings(collection, recipe.entry["axes"])
    asked = plots.Options(**options, delta=_rule(recipe, made))
    return plots.make_figure(recipe.kind, collection, asked, notes)


def _rule(recipe: Recipe, made: Mapping[Wanted, Made]) -> Any:
    """Return which Δm a figure shows: against the paper's target run where it has one."""
    target = recipe.target if recipe.entry.get("delta") else None
    if target is None or not made[target].runs:
        return None
    return Delta(reference=Reference(dict(made[target].runs), f"{target.label} of {target.scenario}"))


def _draw_scenarios(planned: Planned) -> Figure:
    from ..reports.plots.distribution import distributions

    panels, titles = {}, {}
    for name in planned.recipe.entry["scenarios"]:
        config = resolve_without_method(name, planned.preset, overrides=planned.overrides)
        panels[name] = describe_clients(config, None)
        titles |= {c["dataset"]: dataset_title(c["dataset"], config.data.source) for c in panels[name]}
    return distributions(panels, titles)


def _draw_panel(recipe: Recipe, made: Mapping[Wanted, Made], options: Mapping[str, Any], draw_panel: Panel) -> Figure:
    """Draw predictions of the lowest seed's runs beside the truth."""
    from ..inference.stored_run import StoredRun

    shown = {wanted: made[wanted].runs for wanted in recipe.lines if made[wanted].runs}
    folders = {wanted.label: runs[min(runs)].folder for wanted, runs in shown.items()}
    runs = {label: StoredRun(folder) for label, folder in folders.items()}
    clients = [p.id for p in next(iter(runs.values())).config.scenario.parties() if p.dataset == options["dataset"]]
    return draw_panel(runs, clients, options["image"])
