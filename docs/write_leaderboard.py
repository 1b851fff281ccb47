"""Write docs/leaderboard/ from the runs in results/leaderboard: tables as CSV, LaTeX and Markdown, and the site.

Run: make leaderboard   runs what is missing, then this; python docs/write_leaderboard.py   this alone
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fmtlbench.cli import main as fmtlbench
from fmtlbench.runs.find import locate_runs
from fmtlbench.runs.folder import RunFolder
from fmtlbench.words import say_duration, say_quantity

ROOT = Path(__file__).parents[1]
RUNS, FOLDER = ROOT / "results" / "leaderboard", ROOT / "docs" / "leaderboard"
# Heading of a part of the page → the command whose tables it has, below the runs.
PARTS = {
    "Scores": ("leaderboard", "--format", "md"),
    "The worst clients": ("leaderboard", "--fairness", "--format", "md"),
    "Are the differences more than chance?": ("stats", "--format", "md"),
    "How far seeds move these numbers": ("stability", "--format", "md"),
    "What the runs cost": ("cost", "--format", "md"),
}
OPENING = """\
# The nano leaderboard

Runs of the embedded data with the preset nano, made by `make leaderboard` and stored in results/leaderboard; numbers on
these images say nothing about NYUD-v2 or PASCAL-Context. docs/write_leaderboard.py writes this page. The same tables:
[tables.csv](tables.csv), [tables.tex](tables.tex), and as pages in site/.
"""


def ask(*words: str | Path) -> str:
    """Return what a command of fmtlbench prints.

    Raises:
        RuntimeError: It failed.
    """
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        if code := fmtlbench([str(word) for word in words]):
            raise RuntimeError(f"fmtlbench {' '.join(map(str, words))} ended with exit code {code}")
    return text.getvalue()


def describe_coverage(runs: Path, grids: Sequence[Path]) -> str:
    """Return a table of how much of every grid is there: what is missing is said, not left out."""
    lines = ["| grid | scenarios | methods | runs that are there | missing |", "|---|---|---:|---:|---|"]
    for grid in grids:
        plan = json.loads(ask("bench", grid, "--out", runs, "--dry-run", "--format", "json"))
        asked = [run for run in plan["runs"] if run["state"] != "refused"]
        there = [run for run in asked if run["state"] == "done"]
        lacking = Counter(run["name"] for run in asked if run["state"] != "done")
        missing = ", ".join(f"{name} ({count})" for name, count in lacking.items())
        missing = missing if there else "all"
        scenarios = ", ".join(dict.fromkeys(run["scenario"] for run in plan["runs"]))
        methods = len({run["name"] for run in asked})
        lines.append(f"| {grid.stem} | {scenarios} | {methods} | {len(there)} of {len(asked)} | {missing or 'none'} |")
    return "\n".join(lines)


def describe_bill(runs: Path) -> str:
    """Return in a sentence what all runs have taken together, by their own bills."""
    bills = [cost for folder, _ in locate_runs([runs])[0] if (cost := RunFolder(folder).cost()) is not None]
    seconds = sum(cost["seconds_total"] for cost in bills)
    energies = [(cost.get("energy") or {}).get("kwh") for cost in bills]
    known = [kwh for kwh in energies if kwh is not None]
    energy = (
        f"{say_quantity(1000 * sum(known), 'Wh')} in {len(known)} runs that measured it" if known else "not measured"
    )
    return f"{len(bills)} runs took {say_duration(seconds)} of one core's wall time; energy: {energy}."


def write(runs: Path = RUNS, folder: Path = FOLDER) -> None:
    """Write the page, the tables and the site."""
    folder.mkdir(parents=True, exist_ok=True)
    grids = sorted((runs / "grids").glob("*.yml"))
    parts = [OPENING, "## What is there, and what is missing\n", describe_coverage(runs, grids), describe_bill(runs)]
    for heading, (verb, *flags) in PARTS.items():
        parts += [f"## {heading}\n", f"`fmtlbench {verb} results/leaderboard {' '.join(flags)}`\n"]
        parts.append(ask(verb, runs, *flags).strip())
    (folder / "README.md").write_text("\n\n".join(part.strip("\n") for part in parts) + "\n", encoding="utf-8")
    for kind, name in (("csv", "tables.csv"), ("latex", "tables.tex")):
        ask("leaderboard", runs, "--format", kind, "-o", folder / name)
    ask("leaderboard", runs, "--format", "html", "-o", folder / "site")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER)
    given = parser.parse_args()
    write(given.runs, given.output)
