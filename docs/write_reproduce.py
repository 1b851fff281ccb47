"""Write docs/reproduce.md: every table and figure of the papers with its command, its runs and what they cost.

Run: python docs/write_reproduce.py   some minutes: networks are built, without storage, to count their operations
A test fails while the page is stale; it takes the hours as they stand and counts those of one table again.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

from page_parts import fill

from fmtlbench.bench.operations import Operations
from fmtlbench.bench.recipes import Planned, plan_recipes
from fmtlbench.config.request import RunRequest
from fmtlbench.reports.papers.claims import load_claims
from fmtlbench.reports.papers.published import load_published
from fmtlbench.reports.papers.recipes import Recipe, load_recipe, recipe_names

PAGE = Path(__file__).parent / "reproduce.md"
RESULTS = Path(__file__).parents[1] / "results" / "leaderboard"
SEEDS = tuple(range(5))
GPUS = 2  # that FMTL-Bench's Table 8 was measured on
COST_TABLE = "fmtlbench_table8_cost_iid1"


def make_page(hours: Mapping[str, float], speeds: Iterable[float], done: Mapping[str, tuple[int, int]]) -> str:
    """Return the page.

    Args:
        hours: By recipe; `all`: of all together, without counting a run twice; `runs`: how many these are.
        speeds: Of Table 8's rows, TFLOP/s per GPU.
        done: By recipe, how many of its runs lie in our results, and how many it has.
    """
    speeds = sorted(speeds)
    papers: dict[str, list[Recipe]] = {}
    for recipe in map(load_recipe, recipe_names()):
        papers.setdefault(recipe.paper, []).append(recipe)
    return fill(
        "reproduce.md.j2",
        claims=sum(not claim.entry.unchecked for claim in load_claims().values()),
        rate=median(speeds),
        low=speeds[0],
        high=speeds[-1],
        gpus=GPUS,
        hours=hours,
        say_hours=_say_hours,
        done=done,
        papers={recipes[0].source.rpartition(", ")[0]: recipes for recipes in papers.values()},
    )


def _say_hours(hours: float) -> str:
    return "–" if hours == 0 else f"{hours:.2g}" if hours < 10 else f"{hours:.0f}"


def read_hours(page: str) -> dict[str, float]:
    """Return the hours as a page has them."""
    found = re.findall(r"`fmtlbench reproduce (\w+)[^`]*` \| \d+ \| ([^ ]+) \|", page)
    total = re.search(r"need\s+(\d+)\s+runs\s+and\s+([\d.]+)\s+GPU\s+hours", page)
    assert total is not None
    by_name = {name: 0.0 if text == "–" else float(text) for name, text in found}
    return by_name | {"runs": float(total[1]), "all": float(total[2])}


def read_speeds(page: str) -> list[float]:
    """Return the lowest, the median and the highest speed of a page."""
    found = re.search(r"made,\s+(\d+\.\d)\s+TFLOP.*?between\s+(\d+\.\d)\s+and\s+(\d+\.\d)", page, re.S)
    assert found is not None
    middle, low, high = map(float, found.groups())
    return [low, middle, high]


def plan(
    names: Iterable[str], out: str = "runs", preset: str | None = None, seeds: tuple[int, ...] = (0,)
) -> list[Planned]:
    """Plan recipes without touching anything."""
    template = RunRequest("", "", out=out, reuse="any")
    return plan_recipes([load_recipe(name) for name in names], template, "cpu", preset=preset, seeds=seeds)


def count_hours(planned: Planned, counter: Operations, speed: float) -> dict[Path, float]:
    """Return the GPU hours of every run of a recipe, by its folder."""
    runs = {run.store.folder: run for wanted in planned.asked for run in planned.runs(wanted).values()}
    return {folder: counter.of_run(run.config) / (speed * 1e12) / 3600 for folder, run in runs.items()}


def measure_speeds(counter: Operations) -> list[float]:
    """Return the TFLOP/s per GPU that each row of FMTL-Bench's Table 8 was made at."""
    (planned,) = plan([COST_TABLE])
    found = []
    for (number, _), asked in planned.recipe.cells.items():
        (run,) = planned.runs(asked).values()
        seconds = float(load_published(COST_TABLE).rows[number]["time_per_round_s"])
        found.append(counter.of_round(run.config) / seconds / GPUS / 1e12)
    return found


def count_done() -> dict[str, tuple[int, int]]:
    """Return how many runs of a recipe lie in our results, and how many it has, where there are some."""
    there = {folder.name for folder in RESULTS.iterdir()}
    names = [n for n in recipe_names() if {asked.scenario for asked in load_recipe(n).wanted} & there]
    found = {}
    for one in plan(names, str(RESULTS), "nano", SEEDS):
        states = [state for state in one.states() if state != "refused"]
        if done := states.count("done"):
            found[one.recipe.name] = (done, len(states))
    return found


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep-hours", action="store_true", help="as the page has them: counting takes minutes")
    if parser.parse_args().keep_hours:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(make_page(read_hours(page), read_speeds(page), count_done()), encoding="utf-8")
        return
    counter = Operations()
    speeds = measure_speeds(counter)
    costs = {one.recipe.name: count_hours(one, counter, median(speeds)) for one in plan(recipe_names())}
    hours = {name: sum(of.values()) for name, of in costs.items()}
    each = {folder: cost for of in costs.values() for folder, cost in of.items()}
    hours |= {"all": sum(each.values()), "runs": len(each)}
    PAGE.write_text(make_page(hours, speeds, count_done()), encoding="utf-8")


if __name__ == "__main__":
    main()
