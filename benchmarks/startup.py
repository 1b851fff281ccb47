"""How soon a command answers: time of some commands ÷ time of `python -c pass`.

Run: python benchmarks/startup.py      All are timed in turns; the best of each counts, since other work on the machine
only adds time. --against REPOSITORY times another checkout's package in the same turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

WORDS = {
    "--help": ["--help"],
    "list": ["list"],
    "show": ["show", "algorithm", "fedavg"],
    "config": ["show", "config", "--algo", "fedavg", "--scenario", "st_mt_1"],
}


def lay_out(checkout: Path, place: Path) -> Path:
    """Link a checkout's packages as they are installed; return the folder for PYTHONPATH."""
    package = place / "fmtlbench"
    package.mkdir(parents=True)
    folders = [*(checkout / "fmtlbench").iterdir()]
    folders += [checkout / name for name in ("algorithms", "metrics", "reports", "scenarios")]
    for source in folders:
        (package / source.name).symlink_to(source.resolve())
    return place


def time_command(words: list[str], path: Path | None) -> float:
    """Return the seconds that a new Python takes for it."""
    environment = dict(os.environ) if path is None else {**os.environ, "PYTHONPATH": str(path)}
    began = perf_counter()
    # Not in a checkout: `python -m` would take the package that lies there.
    subprocess.run([sys.executable, *words], env=environment, cwd=path, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--against", type=Path, metavar="REPOSITORY", help="another checkout, to compare with")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        places = {"here": lay_out(Path(__file__).parents[1], Path(folder) / "here")}
        if args.against:
            places["against"] = lay_out(args.against, Path(folder) / "against")
        commands = {("pass", "python"): (["-c", "pass"], None)}
        for where, path in places.items():
            for name, words in WORDS.items():
                commands[name, where] = (["-m", "fmtlbench", *words], path)
        best: dict[tuple[str, str], float] = {}
        for _ in range(args.turns):
            for key, (words, path) in commands.items():
                best[key] = min(best.get(key, 1e9), time_command(words, path))
    base = best.pop(("pass", "python"))
    for (name, where), seconds in best.items():
        print(f"fmtlbench {name:<7} {where:<8} {seconds / base:6.2f} × python -c pass")
    if args.against:
        for name in WORDS:
            print(f"fmtlbench {name:<7} here ÷ against: {best[name, 'here'] / best[name, 'against']:.2f}")


if __name__ == "__main__":
    main()
