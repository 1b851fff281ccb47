"""How generated requests end: ok, refused in one line, or in ways that are mistakes (a traceback, a hang, …), counted.

Run: python benchmarks/fuzz.py --cases 2000     The generators are those of tests/fuzz; a seed gives the same cases.
Each case is tried in a process of its own with a limit on its memory, so that one cannot spoil the next. The exit code
is 1 if any ended as it must not. The Python that runs it decides which copy of the package is tried; with --kinds, a
kind has the same cases as without.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "fuzz")]
# How many cases of a kind are tried for one of a kind that is not named here.
SHARES = {"override": 3, "report": 6, "evaluate": 6, "resume": 2, "hook": 2}
SHARES |= {"preset": 2, "run file": 2, "range": 2, "runs": 3}
MEMORY = 3 * 2**30  # bytes that a case may take beyond what the process has
WAIT = 300  # seconds on the clock until a case is ended from outside


def try_in_child(attempt: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Make an attempt in a forked process; return its outcome and what it said."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
            result = attempt()
        except BaseException as error:
            result = ("traceback", f"{type(error).__name__}: {str(error)[:200]}")
        os.write(write_end, json.dumps(result).encode()[:4000])
        os._exit(0)
    os.close(write_end)
    ready, _, _ = select.select([read_end], [], [], WAIT)
    content = os.read(read_end, 5000) if ready else b""
    os.close(read_end)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not ready:
        return "hang", f"longer than {WAIT} s on the clock"
    return tuple(json.loads(content)) if content else ("traceback", f"the process ended with status {status}")


def warm_up(folder: Path) -> None:
    """Import here what the commands import, so that no child has to do so again."""
    from cases import Case, run_command
    from damaged_runs import PLOTS, trained_runs, written_runs
    from evaluate_inputs import IDS, TASKS
    from robots import good_array, npy

    labels = {f"gt-{task}/{i}.npy": npy(good_array(task, 0)) for task in TASKS for i in IDS}
    evaluate = "score --dataset plain --classes 5 --task {0} --pred gt-{0} --gt gt-{0}"
    run = next((trained_runs() / "runs/duo/local").iterdir())
    for words in (
        "bench --algos local --scenarios st_mt_1 --dry-run --format json",
        "show scenario st_mt_1 -o figure",
        "papers list matfl_table1 -o table.csv",
        f"predict {run} --limit 1 -o predictions",
        "show preset nano",
        "show config --algo local --scenario st_mt_1",
        f"runs show {run}",
        f"export --weights {run} -o card",
        f"score predictions --name mine --like {run}",
        "leaderboard runs --format html -o site",
        "stats runs -o figures",
        "stats --noise runs",
        "cost runs",
        *(f"plot {kind} runs -o figure.png" for kind in PLOTS),
        *(evaluate.format(task) for task in TASKS),
    ):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            run_command(Case("warm", tuple(words.split()), labels, str(written_runs())), Path(made))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000, help="default: 2000")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--kinds", metavar="NAME,…", help="only these; default: all")
    parser.add_argument("--show", type=int, default=5, help="mistakes to print of each kind and outcome; default: 5")
    parser.add_argument(
        "--limit",
        type=float,
        default=40,
        help="seconds of work, or six times as many on the clock, that a case may take",
    )
    args = parser.parse_args()

    import torch
    from cases import FINE, OUTCOMES, run_command
    from commands import COMMANDS
    from faulty import Patient, hook_cases
    from hypothesis import HealthCheck, Phase, given, seed, settings

    import fmtlbench

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a forked process has no other threads
    os.environ["FMTLBENCH_ENERGY"] = "off"
    counts: dict[str, Counter] = {kind: Counter() for kind in (*COMMANDS, "hook")}
    shown: Counter = Counter()
    with tempfile.TemporaryDirectory() as made:
        os.environ["FMTLBENCH_CACHE"] = f"{made}/cache"
        patient = Patient(Path(made))
        warm_up(Path(made))

        def book(kind: str, case: object, attempt: Callable[[], tuple[str, str]]) -> None:
            outcome, said = try_in_child(attempt)
            counts[kind][outcome] += 1
            shown[kind, outcome] += 1
            if outcome not in FINE and shown[kind, outcome] <= args.show:
                print(f"{kind}\t{outcome}\t{said}\t{str(case)[:300]!r}", flush=True)

        def command(case) -> None:
            with tempfile.TemporaryDirectory() as folder:
                book(case.kind, case, lambda: run_command(case, Path(folder), args.limit))

        def hook(case) -> None:
            book("hook", case, lambda: patient.try_case(case, args.limit))

        kinds = {**{kind: (cases, command) for kind, cases in COMMANDS.items()}, "hook": (hook_cases(), hook)}
        chosen = [kind for kind in kinds if args.kinds is None or kind in args.kinds.split(",")]
        shares = {kind: SHARES.get(kind, 1) for kind in kinds}  # a kind has as many cases with others as without
        plans = [(*kinds[kind], args.cases * shares[kind] // sum(shares.values()) + 1) for kind in chosen]
        for cases, attempt, number in plans:
            tried, seen = 0, set()
            while tried < number:  # a strategy may run out of what is new to it
                before = tried

                def one(case) -> None:
                    nonlocal tried
                    if repr(case) in seen:  # noqa: B023  # strategies repeat themselves
                        return
                    seen.add(repr(case))  # noqa: B023
                    tried += 1
                    attempt(case)  # noqa: B023  # called before the next turn of the loop

                checked = given(cases)(one)
                checked = settings(
                    max_examples=number - tried,
                    deadline=None,
                    database=None,
                    phases=(Phase.generate,),
                    suppress_health_check=list(HealthCheck),
                )(checked)
                seed(args.seed + tried)(checked)()
                if tried == before:
                    break
            print(
                f"{sum(shown.values())} cases tried: {dict(+sum(counts.values(), Counter()))}",
                file=sys.stderr,
                flush=True,
            )
    print(f"fmtlbench of {Path(fmtlbench.__file__).parent}")
    print("\t".join(("kind", *OUTCOMES)))
    total: Counter = Counter()
    for kind, found in counts.items():
        total += found
        print("\t".join((kind, *(str(found[outcome]) for outcome in OUTCOMES))))
    print("\t".join(("all", *(str(total[outcome]) for outcome in OUTCOMES))))
    return int(any(total[outcome] for outcome in OUTCOMES if outcome not in FINE))


if __name__ == "__main__":
    sys.exit(main())
