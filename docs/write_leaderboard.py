"""Write docs/leaderboard/ from the runs in results/leaderboard: its pages, tables as CSV and LaTeX, and the site.

Run: make leaderboard   runs what is missing, then this; python docs/write_leaderboard.py   this alone

What the numbers show is said by hand, in results/leaderboard/reading.md. A field there, `{st_mt_1: FedAvg}`, gives way
to that method's Δm; a test computes the other numbers anew. Its first line says of how many runs it was written.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill as fill_lines
from typing import Any

from page_parts import WIDTH, fill

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import unknown
from fmtlbench.base.words import say_count, say_duration, say_quantity
from fmtlbench.cli import main as fmtlbench
from fmtlbench.reports.papers.decide import FAILS, HOLDS, UNDECIDED
from fmtlbench.runs.find import locate_runs
from fmtlbench.runs.folder import RunFolder
from fmtlbench.scenarios import probe_names

ROOT = Path(__file__).parents[1]
RUNS, PROBES, FOLDER = ROOT / "results" / "leaderboard", ROOT / "results" / "probes.md", ROOT / "docs" / "leaderboard"
READING = "reading.md"  # beside the runs
EACH = "--scenario"  # of a command that is asked for every scenario by itself, as ranks over blocks are
# File of a page → its heading, and the commands whose tables it has.
PAGES = {
    "clients.md": ("The worst clients", [("leaderboard", "--fairness")]),
    "chance.md": ("Are the differences more than chance?", [("stats", EACH), ("stability",)]),
    "cost.md": ("What the runs cost", [("cost",)]),
}
PROBED, PAPERS = "probes.md", "papers.md"
# Scenario → the paper's table with most of the methods.
PUBLISHED = {"st_mt_1": "fedhca2_table1_st_mt_1", "st_mt_2": "fedhca2_table2_st_mt_2"}
WRITTEN_FOR = re.compile(r"<!-- written for: (.*) -->\n")
FIELD = re.compile(r"\{([\w-]+): ([^{}]+)\}")


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


# -- what is there -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bill:
    """What runs took together: wall time, and the energy of those that measured it."""

    runs: int
    seconds: float
    kwh: float
    measured: int

    @classmethod
    def of(cls, folders: Iterable[Path]) -> Bill:
        """Add up the bills of runs."""
        bills = [cost for folder in folders if (cost := RunFolder(folder).cost()) is not None]
        energies = [(cost.get("energy") or {}).get("kwh") for cost in bills]
        known = [kwh for kwh in energies if kwh is not None]
        return cls(len(bills), sum(cost["seconds_total"] for cost in bills), sum(known), len(known))

    @property
    def energy(self) -> str:
        """The energy in words."""
        return say_quantity(1000 * self.kwh, "Wh") if self.measured else "not measured"


@dataclass(frozen=True)
class Coverage:
    """How much of a grid is there, and what those runs took by their own bills."""

    grid: str
    scenarios: str
    methods: int
    asked: int
    there: int
    missing: str
    bill: Bill

    @classmethod
    def of(cls, grid: Path, runs: Path) -> Coverage:
        """Look up which runs of a grid are there."""
        plan = json.loads(ask("bench", grid, "--out", runs, "--dry-run", "--format", "json"))
        asked = [run for run in plan["runs"] if run["state"] != "refused"]
        done = [run for run in asked if run["state"] == "done"]
        lacking = Counter(run["name"] for run in asked if run["state"] != "done")
        missing = ", ".join(f"{name} ({count})" for name, count in lacking.items()) if done else "all"
        return cls(
            grid=grid.stem,
            scenarios=", ".join(dict.fromkeys(run["scenario"] for run in plan["runs"])),
            methods=len({run["name"] for run in asked}),
            asked=len(asked),
            there=len(done),
            missing=missing or "none",
            bill=Bill.of(Path(run["folder"]) for run in done),
        )


# -- at a glance -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Board:
    """A table of scores as the command gives it: its heading, and the cells of every method."""

    scenario: str
    heading: str
    rows: Mapping[str, Mapping[str, Any]]

    def say_delta(self, method: str) -> str:
        """Return a method's Δm in words; empty if it has none here."""
        cell = self.rows.get(method, {}).get("delta_m") or {}
        if cell.get("value") is None:
            return cell.get("word") or ""  # why there is none: NULL, failed
        text = f"{cell['value']:+.2f}{cell.get('signs', '')}" if cell["value"] else "0.00"
        return f"{text} [{cell['low']:+.2f}, {cell['high']:+.2f}]" if cell.get("low") != cell.get("high") else text

    def count_seeds(self, method: str) -> int:
        """Return of how many seeds a method's row is."""
        return int((self.rows[method].get("seeds") or {}).get("value") or 0)

    def find_twins(self) -> Iterator[list[str]]:
        """Give the methods whose scores are the same to the last digit, seeds included."""
        same: dict[str, list[str]] = {}
        for method, cells in self.rows.items():
            scores = {key: (cell.get("value"), cell.get("n")) for key, cell in cells.items() if key != "delta_m"}
            if self.count_seeds(method):
                same.setdefault(repr(scores), []).append(method)
        yield from (methods for methods in same.values() if len(methods) > 1)


def read_boards(runs: Path) -> list[Board]:
    """Return the tables of scores."""
    tables = json.loads(ask("leaderboard", runs, "--format", "json"))["tables"]
    headings = Counter(_scenario_of(table) for table in tables)
    return [
        Board(
            _scenario_of(table),
            _scenario_of(table) if headings[_scenario_of(table)] == 1 else table["name"],
            {row["labels"]["method"]: row["cells"] for row in table["rows"]},
        )
        for table in tables
    ]


def _scenario_of(table: Mapping[str, Any]) -> str:
    return table["title"].partition(" version")[0]


def show_at_a_glance(boards: Sequence[Board]) -> str:
    """Return one table of all methods' Δm, the highest of the first scenario first."""
    methods = list(dict.fromkeys(method for board in boards for method in board.rows))
    first = boards[0].rows
    values = {method: (first.get(method, {}).get("delta_m") or {}).get("value") for method in methods}
    methods.sort(key=lambda method: (values[method] is None, -(values[method] or 0)))
    most = [max(map(board.count_seeds, board.rows)) for board in boards]
    lines = [f"| Δm % ↑ [95 %] | {' | '.join(board.heading for board in boards)} |", "|---|" + "---:|" * len(boards)]
    for method in methods:
        cells = []
        for board, seeds in zip(boards, most, strict=True):
            lacks = method in board.rows and 0 < board.count_seeds(method) < seeds
            cells.append(board.say_delta(method) + (f" ({board.count_seeds(method)} seeds)" if lacks else ""))
        lines.append(f"| {method} | {' | '.join(cells)} |")
    twins = [f"{', '.join(methods)} on {board.heading}" for board in boards for methods in board.find_twins()]
    notes = [
        "",
        "Δm: mean relative change over the columns against Local, seed by seed. † differs from Local, ‡ from the",
        f"highest Δm of its column, at 95 % (t-test over seeds, Holm). Seeds: {_list(most)}.",
    ]
    if twins:
        notes.append(f"Equal in every digit, so one method under several names: {'; '.join(twins)}.")
    return "\n".join([*lines, *notes])


def _list(seeds: Sequence[int]) -> str:
    return str(seeds[0]) if len(set(seeds)) == 1 else ", ".join(map(str, seeds))


# -- what it shows -----------------------------------------------------------------------------------------------------


def read_reading(file: Path, boards: Sequence[Board]) -> str:
    """Return what was written by hand about the numbers, with the numbers put in.

    Where other runs are there than when it was written, the text says so itself.

    Raises:
        UnknownNameError: It names a table or a method that is not there.
        ValueError: It does not say what it was written for.
    """
    text = file.read_text(encoding="utf-8")
    said = WRITTEN_FOR.match(text)
    if said is None:
        raise ValueError(f"{file}: begins with {text[:40]!r}, expected <!-- written for: SCENARIO RUNS, … -->")
    by_heading = {board.heading: board for board in boards}

    def say(field: re.Match) -> str:
        heading, method = field.groups()
        if heading not in by_heading:
            raise unknown("table", heading, by_heading, f"{file}: {field[0]}")
        if method not in by_heading[heading].rows:
            raise unknown(f"method of {heading}", method, by_heading[heading].rows, f"{file}: {field[0]}")
        return by_heading[heading].say_delta(method)

    paragraphs = FIELD.sub(say, text[said.end() :]).strip().split("\n\n")
    body = "\n\n".join(fill_lines(one, WIDTH, break_long_words=False, break_on_hyphens=False) for one in paragraphs)
    now = count_runs(boards)
    return body if said[1] == now else f"*Written when there were other runs: {said[1]}; now: {now}.*\n\n{body}"


def count_runs(boards: Iterable[Board]) -> str:
    """Return how many runs each table is of, in the words of `written for`."""
    return ", ".join(f"{board.heading} {sum(map(board.count_seeds, board.rows))}" for board in boards)


def read_probes(file: Path) -> str:
    """Return what the methods do where the right answer is known, and on how much of that; or that this was not run.

    Args:
        file: The tables of a folder of runs beside it, of the same name.
    """
    if not file.is_file():
        return "Not run yet."
    runs = [RunFolder(folder).summary() for folder, _ in locate_runs([file.with_suffix("")])[0]]
    methods = {run["algorithm"] for run in runs}
    probes = sorted({run["scenario"] for run in runs})
    there = f"{say_count(len(runs), 'run')}: {say_count(len(methods), 'method')} on {', '.join(probes)}"
    built_in = [name for name in ALGORITHMS if ALGORITHMS.home_of(name).startswith("fmtlbench.")]
    left = f"of {len(built_in)} methods and {len(probe_names())} probes; what is not below was not run"
    return f"{there}, {left}.\n\n{set_depth(file.read_text(encoding='utf-8').strip(), 2)}"


def set_depth(tables: str, depth: int) -> str:
    """Give all headings of tables the same depth."""
    return re.sub(r"^#+ ", "#" * depth + " ", tables, flags=re.M)


# -- the pages ---------------------------------------------------------------------------------------------------------


def make_pages(runs: Path, probes: Path) -> dict[str, str]:
    """Return the text of every page, by file."""
    grids = [Coverage.of(grid, runs) for grid in sorted((runs / "grids").glob("*.yml"))]
    boards = read_boards(runs)
    scenarios = list(dict.fromkeys(board.scenario for board in boards))
    pages = {
        "README.md": fill(
            "leaderboard.md.j2",
            glance=show_at_a_glance(boards),
            reading=read_reading(runs / READING, boards) if (runs / READING).is_file() else "",
            grids=grids,
            bill=Bill.of(folder for folder, _ in locate_runs([runs])[0]),
            say_duration=say_duration,
            scores=_show(runs, ("leaderboard",), depth=3),
        )
    }
    for name, (heading, commands) in PAGES.items():
        asked = [
            words
            for command in commands
            for words in ([(*command, scenario) for scenario in scenarios] if EACH in command else [command])
        ]
        tables = "\n\n".join(_show(runs, words) for words in asked)
        pages[name] = fill("leaderboard_tables.md.j2", heading=heading, tables=tables)
    return {**pages, PROBED: fill("leaderboard_probes.md.j2", probes=read_probes(probes))}


def _show(runs: Path, command: Sequence[str], depth: int = 2, only: str = "") -> str:
    """Return a command as one types it, and its tables with headings of the given depth; or those a pattern finds."""
    verb, *flags = command
    words = " ".join([f"fmtlbench {verb} results/leaderboard", *flags, "--format md"])
    tables = set_depth(ask(verb, runs, *flags, "--format", "md"), depth)
    return f"`{words}`\n\n{re.search(only, tables, re.M | re.S)[0].strip() if only else tables.strip()}"


def make_papers_page(runs: Path) -> str:
    """Return the page with published tables and claims beside the runs: half a minute of a core."""
    order, shown = r"^## [^\n]*order of methods.*?(?=^## |\Z)", []
    for board in read_boards(runs):
        if table := PUBLISHED.get(board.heading):
            shown.append(_show(runs, ("compare", "--published", table)))
            shown.append(_show(runs, ("stability", "--scenario", board.heading, "--published", table), only=order))
    return fill("leaderboard_papers.md.j2", tables="\n\n".join(shown), **ask_claims(runs))


def ask_claims(runs: Path) -> dict[str, Any]:
    """Return what the papers say of their results, as far as these runs can be asked."""
    command = ("reproduce", "--claims", "--preset", "nano", "--seeds", "0-4")
    tables = json.loads(ask(*command, "--out", runs, "--reuse", "any", "--format", "json"))["tables"]
    claims = [row for table in tables for row in table["rows"]]
    tried = []
    for row in claims:
        said = {key: cell.get("word") for key, cell in row["cells"].items()}
        if said["measured"] in (HOLDS, FAILS, UNDECIDED):
            cells = [row["labels"]["where"], row["labels"]["says"], *said.values()]
            tried.append([str(cell).replace("|", "/") for cell in cells])
    return {"command": command, "claims": len(claims), "tried": tried}


def write(runs: Path = RUNS, probes: Path = PROBES, folder: Path = FOLDER) -> None:
    """Write the pages, the tables and the site."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**make_pages(runs, probes), PAPERS: make_papers_page(runs)}.items():
        (folder / name).write_text(text, encoding="utf-8")
    for kind, name in (("csv", "tables.csv"), ("latex", "tables.tex")):
        ask("leaderboard", runs, "--format", kind, "-o", folder / name)
    write_site(folder / "site", runs)


def write_site(folder: Path, runs: Path = RUNS) -> None:
    """Write the tables as a site of pages with figures, and a page for every run."""
    ask("leaderboard", runs, "--format", "html", "-o", folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--probes", type=Path, default=PROBES)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER)
    given = parser.parse_args()
    write(given.runs, given.probes, given.output)
