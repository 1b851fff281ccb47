"""What tables cost: time of collect + leaderboard over 1000 run folders ÷ time to parse the same summaries with json.

Run: python benchmarks/reports.py      Both are timed in turns in this process; the best of each counts,
since other work on the machine only adds time. --against REPOSITORY also times, in turns, how long this checkout and
that one take to read the summaries below results/: files, decoding and checking.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from made_runs import ST_MT_1, summary, write_run
from startup import lay_out

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.config.presets import default_options
from fmtlbench.reports.collect import collect
from fmtlbench.reports.formats import render
from fmtlbench.reports.labels import ZOO
from fmtlbench.reports.leaderboard import leaderboards

LIMIT = 5.0
# Beside each primary score a real summary holds a few more, of these names.
EXTRA = {
    "semseg": ["pixelAcc"],
    "human_parts": ["pixelAcc"],
    "sal": ["sal_mIoU", "threshold"],
    "normals": ["median", "within11.25", "within22.5", "within30"],
    "depth": ["absRel", "delta1"],
    "edge": ["oisF", "AP", "threshold", "precision", "recall"],
}


RESULTS = Path(__file__).parents[1] / "results"
READ = """
import sys
from pathlib import Path
from time import perf_counter
from fmtlbench.runs.folder import RunFolder

folders = [RunFolder(file.parent) for file in Path(sys.argv[1]).rglob("summary.json")]
for turn in range(2):  # the first one imports what is imported late
    began = perf_counter()
    for folder in folders:
        assert folder.summary()
print(perf_counter() - began)
"""


def write_runs(root: Path, count: int) -> list[Path]:
    """Write `count` finished runs: two presets × all methods × as many seeds as it takes."""
    draw = random.Random(0)
    folders = []
    for i in range(count):
        algorithm = ZOO[i % len(ZOO)]
        preset = ("nano", "paper")[i // len(ZOO) % 2]
        seed = i // (2 * len(ZOO))
        values = {(c, t): draw.uniform(20, 80) for c, (_, tasks) in ST_MT_1.items() for t in tasks}
        extra = [
            {
                "client": c,
                "dataset": d,
                "split": "global",
                "task": t,
                "metric": m,
                "value": draw.random(),
                "primary": False,
            }
            for c, (d, tasks) in ST_MT_1.items()
            for t in tasks
            for m in EXTRA[t]
        ]
        made = summary(
            algorithm,
            values,
            seed,
            ST_MT_1,
            extra_scores=extra,
            scenario="st_mt_1",
            preset=preset,
            options=default_options(ALGORITHMS.resolve(algorithm), preset),
            setting=f"{preset:0<64}",
        )
        folders.append(write_run(root, made))
    return folders


def time_tables(root: Path) -> float:
    began = perf_counter()
    render(leaderboards(collect([root])), "table")
    return perf_counter() - began


def time_parsing(folders: list[Path]) -> float:
    began = perf_counter()
    for folder in folders:
        json.loads((folder / "summary.json").read_bytes())
    return perf_counter() - began


def compare_reading(checkout: Path, turns: int) -> float:
    """Return how many times as long as this checkout another one takes to read the stored summaries."""
    times: dict[Path, list[float]] = {Path(__file__).parents[1]: [], checkout: []}
    with tempfile.TemporaryDirectory() as folder:
        places = {tree: lay_out(tree, Path(folder) / str(place)) for place, tree in enumerate(times)}
        for _ in range(turns):
            for tree, place in places.items():
                command = [sys.executable, "-c", READ, str(RESULTS)]
                environment = {**os.environ, "PYTHONPATH": str(place)}
                told = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, check=True)
                times[tree].append(float(told.stdout))
    here, there = map(min, times.values())
    return there / here


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--against", type=Path, metavar="REPOSITORY", help="another checkout, to compare with")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        folders = write_runs(root, args.runs)
        size = sum((f / "summary.json").stat().st_size for f in folders) / len(folders)
        time_tables(root)  # imports and disk caches are not what is measured
        both = [(time_tables(root), time_parsing(folders)) for _ in range(args.repeat)]
    whole, bare = (min(times) for times in zip(*both))
    print(f"{args.runs} runs of {size / 1000:.1f} kB: tables {whole:.3f} s, json {bare:.3f} s")
    if args.against:
        print(f"reading results/, against ÷ here: {compare_reading(args.against, args.repeat):.2f}")
    print(f"ratio {whole / bare:.2f} (limit {LIMIT})")
    return int(whole / bare > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
