"""How large the house is, and how far one goes through it to make a config: rooms, rules, verbs, lines, crossings.

Run: make shape      or: python benchmarks/shape.py --against REPOSITORY, which counts another checkout beside this one.
A room is what lies directly below `fmtlbench`; a crossing is a call from a function of one room to one of another.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from startup import lay_out

HERE = Path(__file__).resolve().parents[1]
PRODUCT = ("fmtlbench", "algorithms", "scenarios", "metrics", "reports")
FRONT = ("__init__", "api", "__main__")  # one room


def count(checkout: Path) -> dict[str, int]:
    """Count what there is in a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        place = lay_out(checkout.resolve(), Path(folder))
        environment = {**os.environ, "PYTHONPATH": f"{place}:{Path(__file__).parent}"}
        words = [sys.executable, __file__, "--inside", str(place / "fmtlbench")]
        made = json.loads(subprocess.run(words, env=environment, cwd=place, check=True, capture_output=True).stdout)
    return {
        "rooms": len(rooms_below(checkout)),
        "rules of dependence": count_rules(runpy.run_path(str(checkout / "tests" / "rooms.py"))),
        **made,
        "lines of product": sum(count_lines(checkout / name) for name in PRODUCT),
        "lines of tests": count_lines(checkout / "tests"),
    }


def rooms_below(checkout: Path) -> set[str]:
    """Return the packages and single modules directly below the package, and the folders that are installed there."""
    inside = {path.stem for path in (checkout / "fmtlbench").iterdir() if path.suffix == ".py"}
    inside |= {path.parent.name for path in (checkout / "fmtlbench").glob("*/*.py")}
    return {"front" if name in FRONT else name for name in inside} | set(PRODUCT[1:])


def count_rules(plan: dict[str, Any]) -> int:
    """Count what the plan of the rooms says: the rows of its order and what is beside it, or, of a list, its arrows."""
    if "ORDER" in plan:
        return len(plan["ORDER"]) + len(plan["NARROW"])
    return sum(len(room.imports) for row in (plan["CONTRACTS"], *plan["LAYERS"]) for room in row)


def count_lines(folder: Path) -> int:
    return sum(len(file.read_bytes().splitlines()) for file in folder.rglob("*.py"))


def trace(package: Path) -> dict[str, int]:
    """Count verbs, and the rooms and crossings of a config that is made for the second time."""
    from fmtlbench.cli import VERBS

    try:
        from fmtlbench.config.request import RunRequest
    except ImportError:  # where it was before
        from fmtlbench.request import RunRequest
    RunRequest("fedhca2", "st_mt_1").config()
    seen: list[tuple[str, str]] = []
    sys.setprofile(listen(seen, package))
    RunRequest("fedhca2", "st_mt_1").config()
    sys.setprofile(None)
    rooms = {callee for _, callee in seen}
    return {
        "verbs": len(VERBS),
        "config: rooms": len(rooms),
        "config: crossings": sum(1 for caller, callee in seen if caller not in ("", callee)),
    }


def listen(seen: list[tuple[str, str]], package: Path) -> Callable[[FrameType, str, Any], None]:
    """Return a profiler that notes (room of the caller, room of the called) of every call of a function of ours."""

    def room_of(frame: FrameType) -> str:
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(package):
            return ""
        name = file.relative_to(package).parts[0].removesuffix(".py")
        return "front" if name in FRONT else name

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (callee := room_of(frame)):
            above = frame.f_back
            while above is not None and not room_of(above):
                above = above.f_back
            seen.append((room_of(above) if above else "", callee))

    return note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, metavar="REPOSITORY", help="another checkout, to compare with")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # the process that asks one package
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(trace(args.inside)))
        return
    ours = count(HERE)
    theirs = count(args.against) if args.against else {}
    for name, number in ours.items():
        print(f"{name:<20} {theirs[name]:>7,} → {number:>7,}" if theirs else f"{name:<20} {number:>7,}")


if __name__ == "__main__":
    main()
