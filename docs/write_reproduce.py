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

from fmtlbench.bench.operations import Operations
from fmtlbench.bench.recipes import Planned, plan_recipes
from fmtlbench.config.request import RunRequest
from fmtlbench.reports.claims import load_claims
from fmtlbench.reports.published import load_published
from fmtlbench.reports.recipes import Recipe, load_recipe, recipe_names

PAGE = Path(__file__).parent / "reproduce.md"
RESULTS = Path(__file__).parents[1] / "results" / "leaderboard"
SEEDS = tuple(range(5))
GPUS = 2  # that FMTL-Bench's Table 8 was measured on
COST_TABLE = "fmtlbench_table8_cost_iid1"

HEAD = """\
<!-- written by docs/write_reproduce.py -->

# The papers' tables and figures, one command each

```
fmtlbench reproduce                                             # the recipes
fmtlbench reproduce NAME --data-root DATA --seeds 0-2 --dry-run # what is missing, how long it takes here
fmtlbench reproduce NAME --preset nano --jobs 2                 # the table on the embedded data, reproduced/NAME.*
fmtlbench reproduce --status runs --preset nano                 # how much of every recipe exists
fmtlbench reproduce --claims --preset nano                      # what the papers say, checked on print and on our runs
```

With the archives, on a GPU:

<!-- not run: needs the archives, a GPU and days -->
```
fmtlbench reproduce NAME --data-root DATA --seeds 0-2           # the same table as the paper made it
```

A recipe is data: `reports/published/tables.yml` says what the rows of a table are (method, scenario, network),
`recipes.yml` beside it what that does not say, and the figures. The runs are those of `fmtlbench bench`: finished
ones are taken, unfinished ones go on, several recipes share theirs. A table is written as text, CSV, Markdown and
LaTeX, in the paper's rows, columns and order with best and second best marked, and once more line by line:
measured, published, gap. A figure is written as PDF and PNG, with what is to be known of it in a `.txt` file.

- **Preset.** By default the paper's own, with the archives that [data.md](data.md) describes. With another one, the
  paper's options of methods, its networks' options and its metrics go along, all else is the preset's; the first
  note says what is not as in the paper, and `≠` marks every column. On the nano tier `resnet_nano` stands for
  ResNet-18 and `swin_nano` for Swin-T where rows differ in them; Swin-S and Swin-B have no small form and their
  rows are left out.
- **Methods** are as their papers define them. `--public-code` runs those of FMTL-Bench and MaT-FL as the code did
  that made the numbers, which is something else for FedProx, FedAMP, FedMTL, PCGrad, FedRep and MaT-FL
  ([deviations.md](deviations.md)).
- **Δ** is against the run that the paper names: a row of the table, or for FMTL-Bench the local MD ResNet-18 run of
  IID-1, which is then among the runs. Table 5's columns include PASCAL-Context, so its own Local is taken, as in
  Table 7.
- **Spread.** ± is over seeds; in FMTL-Bench's tables over clients, as printed there. With one seed there is no
  test.
- FMTL-Bench's Tables 2 to 5: the text at hand lacks their values, so nothing is published beside them.
- FMTL-Bench's Figures 4 and 5 take the clients' own test images, 16 blocks of (client, task): with the global ones
  alike clients are one block, and four blocks can prove nothing. The paper does not say what its blocks are.

## Claims

`fmtlbench reproduce --claims` checks {claims} statements of the papers' result sections ([reports.md](reports.md))
on the printed numbers and, where runs are there, on ours: *holds*, *does not hold* or *undecided*, with the
statistic. With one seed nothing is decided.

## Cost

Runs are counted for one seed, those that a method refuses (NULL) among them. GPU hours are of training alone, on
one RTX 2080 Ti: operations of all training images (forward and backward, counted on the networks; twice for Ditto,
which trains two models) ÷ the speed at which FMTL-Bench's Table 8 was made, {rate:.1f} TFLOP/s per GPU: the median
over its 18 rows of the operations of a round ÷ its seconds per round ÷ {gpus} GPUs. Rows of Table 8 lie between
{low:.1f} and {high:.1f}. Recipes share runs: all of them together need {together} runs and {all_hours} GPU hours.

*Run by us* counts finished runs of five seeds with the nano preset in `results/leaderboard`, those of
[our leaderboard](leaderboard/README.md); with the papers' presets nothing was run: neither the archives nor a GPU was
at hand. These folders keep no networks, so predictions cannot be drawn from them. Every recipe was carried out from
runs to files once, at a size of seconds, as `make matrix` does.

"""


def make_page(hours: Mapping[str, float], speeds: Iterable[float], done: Mapping[str, tuple[int, int]]) -> str:
    """Return the page.

    Args:
        hours: By recipe; `all`: of all together, without counting a run twice; `runs`: how many these are.
        speeds: Of Table 8's rows, TFLOP/s per GPU.
        done: By recipe, how many of its runs lie in our results, and how many it has.
    """
    speeds = sorted(speeds)
    text = HEAD.format(
        claims=sum(not claim.entry.unchecked for claim in load_claims().values()),
        rate=median(speeds),
        low=speeds[0],
        high=speeds[-1],
        gpus=GPUS,
        together=round(hours["runs"]),
        all_hours=_say_hours(hours["all"]),
    )
    recipes = [load_recipe(name) for name in recipe_names()]
    for paper in dict.fromkeys(recipe.paper for recipe in recipes):
        members = [recipe for recipe in recipes if recipe.paper == paper]
        text += f"## {members[0].source.rpartition(', ')[0]}\n\n"
        text += "| what | command | runs | GPU hours | run by us |\n|---|---|---:|---:|---|\n"
        for recipe in members:
            text += _line(recipe, hours[recipe.name], *done.get(recipe.name, (0, 0)))
        text += "\n"
    return text.rstrip() + "\n"


def _line(recipe: Recipe, hours: float, done: int, planned: int) -> str:
    command = f"fmtlbench reproduce {recipe.name}" + (" --data-root DATA" if recipe.wanted else "")
    ours = f"nano, {done} of {planned}" if done else "nothing is run" if not recipe.wanted else "no"
    cells = (f"{recipe.place}: {recipe.title}", f"`{command}`", str(len(recipe.wanted)), _say_hours(hours), ours)
    return f"| {' | '.join(cells)} |\n"


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
