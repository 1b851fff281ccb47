"""Which hand-made defects the tests find: each of `mutants.yml` is put into a copy of the product and looked for.

Run: python benchmarks/mutants.py          (or `make mutants`; --base DIR asks the tests of another checkout)

A defect is found if a test fails with it that passes without it. Tests that look at sources or pages instead of
behaviour (`not_behaviour` in mutants.yml) are left out. First the tests run that should see it, then, if they pass, the
wider ones; the first failure ends it. Results are kept in a file, so that the same command goes on where it stopped;
they begin anew when the checkout's product or tests have changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from importlib.util import cache_from_source
from pathlib import Path
from time import perf_counter
from typing import Any

from fmtlbench.base.errors import UsageError
from fmtlbench.base.yamlfile import load_yaml

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".yml")
BESIDE = ("algorithms", "metrics", "reports", "scenarios")  # folders that are installed as parts of the package
PRODUCT = ("fmtlbench", *BESIDE)
# Of the checkout's own folder; below it all is copied.
LEFT_OUT = (".git", ".venv*", "results", "build", "dist", "runs", ".hypothesis", ".*_cache", "*.egg-info")
NO_TEST = ("collecting ", "no end")  # how what failed begins, if that was not a test
FAILURES = "FMTLBENCH_MUTANTS_FAILURES"  # the file to which the tests' process writes what failed

# Every Python process that finds this on its path imports the package from the copy, as an editable install does.
SITE = '''\
from importlib.machinery import PathFinder
import sys


class Copy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "fmtlbench" or name in {beside!r}:
            return PathFinder.find_spec(name, [{tree!r}])
        return None


def is_ours(finder):
    """Whether it finds the checkout itself, where that is installed as editable."""
    return "fmtlbench" in getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", ())


sys.meta_path[:] = [Copy, *(finder for finder in sys.meta_path if not is_ours(finder))]
'''
PLUGIN = f"""\
import os


def pytest_runtest_logreport(report):
    if report.failed:
        _tell(report.nodeid)


def pytest_collectreport(report):
    if report.failed:
        _tell("collecting " + report.nodeid)


def _tell(name):
    with open(os.environ["{FAILURES}"], "a", encoding="utf-8") as file:
        file.write(name + "\\n")
"""


class Mistake(UsageError):
    """What is wrong with the list or the command."""


@dataclass(frozen=True)
class Defect:
    """A small wrong edit of the product, and which tests are likely to see it."""

    name: str
    room: str
    file: str
    old: str  # occurs exactly once in the file
    new: str
    tests: list[str]  # files or folders that run first
    words: str = ""  # of pytest's -k, for the first tests
    wider: list[str] | None = None  # files or folders that run if the first pass; None: those of the room
    before: dict[str, Any] = field(
        default_factory=dict
    )  # what differs in older checkouts: file, old, new, tests, words

    def fingerprint(self, found: bool) -> str:
        """Return what a result is about: what is found stays found wherever else is looked for it."""
        about = asdict(self)
        if found:
            about = {key: about[key] for key in ("file", "old", "new", "before")}
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """The defects, where each room is tested, and which tests say nothing about behaviour."""

    defects: list[Defect]
    rooms: dict[str, list[str]]
    not_behaviour: list[str]


@dataclass
class Outcome:
    """What became of a defect."""

    verdict: str  # "found", "not found" or "undecided"
    by: str = ""  # the test that failed, or why it is undecided
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    fingerprint: str = ""


def read_plan(path: Path) -> Plan:
    """Read the list; entries that lack something or have equal names are refused."""
    content = load_yaml(path)
    defects = []
    for entry in content["defects"]:
        try:
            defects.append(Defect(**entry))
        except TypeError as error:
            raise Mistake(f"{path.name}: {entry.get('name', entry)}: {error}") from None
    names = [defect.name for defect in defects]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Mistake(f"{path.name}: two defects have one name: {', '.join(twice)}")
    for defect in defects:
        if defect.room not in content["rooms"]:
            raise Mistake(f"{path.name}: {defect.name}: no tests are named for the room {defect.room!r}")
    return Plan(defects, content["rooms"], content["not_behaviour"])


def find_place(defect: Defect, root: Path) -> tuple[Path, str, str]:
    """Return the file of a defect in a checkout, its text and the text with the defect.

    The entry's own file comes first, then what it says of older checkouts, then the only product file that has the
    text: files move.
    """
    older = {"file": defect.file, "old": defect.old, "new": defect.new, **defect.before}
    for file, old, new in ((defect.file, defect.old, defect.new), (older["file"], older["old"], older["new"])):
        place = root / file
        if place.is_file() and (text := place.read_text(encoding="utf-8")).count(old) == 1:
            return place, text, text.replace(old, new)
    suffix = Path(defect.file).suffix
    holders = [
        place
        for folder in PRODUCT
        for place in sorted((root / folder).rglob(f"*{suffix}"))
        if place.read_text(encoding="utf-8").count(defect.old) == 1
    ]
    if len(holders) != 1:
        held = ", ".join(str(place.relative_to(root)) for place in holders) or "no file"
        raise Mistake(f"its old text must stand exactly once in {defect.file}; of all files, {held} has it so")
    text = holders[0].read_text(encoding="utf-8")
    return holders[0], text, text.replace(defect.old, defect.new)


class Copy:
    """A copy of a checkout, whose files may be broken and mended."""

    def __init__(self, checkout: Path, place: Path, plan: Plan, args: argparse.Namespace) -> None:
        self.root, self.aside = place / "tree", place / "aside"
        self.plan, self.wrap, self.limit = plan, shlex.split(args.wrap), args.limit
        matching = shutil.ignore_patterns(*LEFT_OUT)

        def left_out(folder: str, names: list[str]) -> set[str]:
            return matching(folder, names) if Path(folder) == checkout else set()

        shutil.copytree(checkout, self.root, ignore=left_out, symlinks=True)
        if (checkout / "results").exists():
            (self.root / "results").symlink_to(checkout / "results")
        self.aside.mkdir()
        beside = tuple(f"fmtlbench.{name}" for name in BESIDE)
        (self.aside / "sitecustomize.py").write_text(SITE.format(beside=beside, tree=str(self.root)), encoding="utf-8")
        (self.aside / "tell_failures.py").write_text(PLUGIN, encoding="utf-8")

    def judge(self, defect: Defect) -> Outcome:
        """Put a defect in, run its tests, take it out."""
        began = perf_counter()
        try:
            place, text, broken = find_place(defect, self.root)
            if place.suffix == ".py":
                compile(broken, str(place), "exec")
        except (Mistake, SyntaxError) as error:
            return Outcome("undecided", str(error))
        room = self.plan.rooms[defect.room]
        # Older checkouts have the older file; what is said of them counts there.
        older = defect.before if place != self.root / defect.file or defect.old not in text else {}
        first, notes = self._find_tests(older.get("tests", defect.tests), room)
        wider, more = self._find_tests(room if defect.wider is None else defect.wider, room)
        words = older.get("words", defect.words)
        turns = [(first, words), ([p for p in wider if words or p not in first], "")]
        times = place.stat()
        place.write_text(broken, encoding="utf-8")
        try:
            failed = self._first_failure([turn for turn in turns if turn[0]], compiled="jit" in text)
        finally:
            place.write_text(text, encoding="utf-8")
            os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
            Path(cache_from_source(str(place))).unlink(missing_ok=True)
        verdict = "not found" if failed is None else "undecided" if failed.startswith(NO_TEST) else "found"
        return Outcome(verdict, failed or "", round(perf_counter() - began, 1), notes + more)

    def find_broken(self, tests: list[str]) -> list[str]:
        """Return those of the tests that fail without any defect, which says nothing then."""
        failed = self._run(tests, "", first_only=False)
        return [test for test in tests if test in failed or any(name.startswith(NO_TEST) for name in failed)]

    def _find_tests(self, paths: list[str], room: list[str]) -> tuple[list[str], list[str]]:
        """Return which of the named tests there are, and lines about those that have moved or gone."""
        found, notes = [], []
        for path in paths:
            if (self.root / path).exists():
                found.append(path)
                continue
            moved = [str(p.relative_to(self.root)) for p in sorted((self.root / "tests").rglob(Path(path).name))]
            instead = moved or [p for p in room if (self.root / p).exists()]
            notes.append(f"{path} is not there; {', '.join(instead) or 'nothing'} runs instead")
            found += instead
        # pytest's --ignore-glob leaves out what it meets in folders, not what it is given by name
        left = [path for path in found if Path(path).name not in self.plan.not_behaviour]
        return list(dict.fromkeys(left)), notes

    def _first_failure(self, turns: list[tuple[list[str], str]], compiled: bool) -> str | None:
        """Return the first test that fails; None if all pass."""
        for paths, words in turns:
            if failed := self._run(paths, words, compiled=compiled):
                return failed[0]
        return None

    def _run(self, paths: list[str], words: str, first_only: bool = True, compiled: bool = False) -> list[str]:
        """Run tests, until one fails; return the names of those that failed, or why they came to no end."""
        failures = self.aside / "failures"
        failures.unlink(missing_ok=True)
        command = [*self.wrap, sys.executable, "-m", "pytest", "-q", "--tb=short", *(["-x"] if first_only else [])]
        command += ["-p", "no:cacheprovider", "-p", "tell_failures", *(["-k", words] if words else []), *paths]
        command += [f"--ignore-glob=*/{name}" for name in self.plan.not_behaviour]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(self.aside), FAILURES: str(failures)}
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            environment["TMPDIR"] = scratch
            if compiled:  # numba does not notice when a function in another file has changed
                environment["NUMBA_CACHE_DIR"] = scratch
            code, said = self._wait_for(command, environment)
        if failures.exists():
            return failures.read_text(encoding="utf-8").splitlines()
        if code is None:
            return [f"no end within {self.limit:g} s: {' '.join(paths)}"]
        if code in (0, 5):  # all passed, or nothing of the kind was there
            return []
        last = said.strip().splitlines()
        return [f"no end, pytest stopped with {code}: {last[-1] if last else ''}"]

    def _wait_for(self, command: list[str], environment: dict[str, str]) -> tuple[int | None, str]:
        """Return the exit code of a command, None if it took too long, and what it said; nothing of it is left."""
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=self.limit)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    return None, ""
                raise
        return process.returncode, said


class Results:
    """The file of what is known, for one state of one checkout."""

    def __init__(self, path: Path, checkout: Path) -> None:
        self.path, self.state = path, _digest(checkout)
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if kept.get("state") != self.state:
            kept = {}
        self.defects = {name: Outcome(**outcome) for name, outcome in kept.get("defects", {}).items()}
        self.clean: dict[str, bool] = kept.get("clean", {})
        self._lock = threading.Lock()

    def is_known(self, defect: Defect) -> bool:
        """Say whether it was decided what came of a defect that has not changed since."""
        outcome = self.defects.get(defect.name)
        if outcome is None or outcome.fingerprint != defect.fingerprint(outcome.verdict == "found"):
            return False
        return outcome.verdict == "not found" or (outcome.verdict == "found" and outcome.by in self.clean)

    def keep(self, defect: Defect, outcome: Outcome) -> None:
        """Write the file anew with one more outcome."""
        with self._lock:
            outcome.fingerprint = defect.fingerprint(outcome.verdict == "found")
            self.defects[defect.name] = outcome
            content = {
                "state": self.state,
                "defects": {name: asdict(each) for name, each in self.defects.items()},
                "clean": self.clean,
            }
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
            new.replace(self.path)


def _digest(checkout: Path) -> str:
    """Return what the product and the tests of a checkout are, as one word."""
    digest = hashlib.sha256()
    for folder in (*PRODUCT, "tests"):
        for file in sorted((checkout / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(str(file.relative_to(checkout)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def making_copies(checkout: Path, plan: Plan, args: argparse.Namespace) -> Iterator[queue.Queue[Copy]]:
    """Give a copy of the checkout for each process that may run at once."""
    copies: queue.Queue[Copy] = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as scratch:
        for number in range(args.jobs):
            copies.put(Copy(checkout, Path(scratch).resolve() / str(number), plan, args))
        yield copies


def judge_all(defects: list[Defect], copies: queue.Queue[Copy], results: Results, jobs: int) -> Iterator[Defect]:
    """Judge every defect and keep what came of it; yield them as they are done."""

    def judge(defect: Defect) -> None:
        copy = copies.get()
        try:
            results.keep(defect, copy.judge(defect))
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(judge, defect): defect for defect in defects}
        try:
            for done in as_completed(waiting):
                done.result()
                yield waiting[done]
        finally:
            pool.shutdown(cancel_futures=True)


def doubt_tests(defects: list[Defect], copy: Copy, results: Results) -> None:
    """Run the tests that have found something without any defect: what one says that fails then decides nothing."""
    found = [defect for defect in defects if results.defects[defect.name].verdict == "found"]
    tests = dict.fromkeys(results.defects[defect.name].by for defect in found)
    if unknown := [test for test in tests if test not in results.clean]:
        broken = copy.find_broken(unknown)
        results.clean |= {test: test not in broken for test in unknown}
    for defect in found:
        outcome = results.defects[defect.name]
        if not results.clean[outcome.by]:
            outcome = replace(outcome, verdict="undecided", by=f"{outcome.by} fails without the defect too")
        results.keep(defect, outcome)


def choose(plan: Plan, args: argparse.Namespace) -> list[Defect]:
    """Return the defects that were asked for; a name that there is not gets the nearest."""
    rooms, names = list(plan.rooms), [defect.name for defect in plan.defects]
    for asked, known in ((args.room, rooms), (args.only, names)):
        for word in asked:
            if word not in known:
                near = get_close_matches(word, known, 1, 0)
                raise Mistake(f"{word!r}: expected one of mutants.yml, such as {near[0]!r}")
    chosen = [d for d in plan.defects if not args.room or d.room in args.room]
    chosen = [d for d in chosen if not args.only or d.name in args.only]
    # Rooms take turns: who stops early has seen some of each.
    turn = {d.name: sum(other.room == d.room for other in chosen[:place]) for place, d in enumerate(chosen)}
    return sorted(chosen, key=lambda d: turn[d.name])


def say(defect: Defect, outcome: Outcome) -> str:
    """Return the lines about one defect."""
    lines = [f"{outcome.verdict:<10} {outcome.seconds:6.1f} s  {defect.room:<12} {defect.name}"]
    lines += [f"{'':<21}by {outcome.by}"] if outcome.verdict == "found" else []
    lines += [f"{'':<21}{outcome.by}"] if outcome.verdict == "undecided" else []
    return "\n".join(lines + [f"{'':<21}{note}" for note in outcome.notes])


def summarize(chosen: list[Defect], results: Results) -> str:
    """Return the table at the end: per room how many of how many, then what was not found."""
    verdicts = {d.name: results.defects[d.name].verdict for d in chosen if d.name in results.defects}
    lines = ["", f"{'room':<14}{'found':>6}{'of':>5}"]
    for room in dict.fromkeys(d.room for d in chosen):
        own = [d.name for d in chosen if d.room == room]
        lines.append(f"{room:<14}{sum(verdicts.get(name) == 'found' for name in own):>6}{len(own):>5}")
    found = sum(verdict == "found" for verdict in verdicts.values())
    seconds = sum(results.defects[name].seconds for name in verdicts)
    lines.append(f"\nfound {found} of {len(chosen)}, in {seconds / 60:.0f} minutes of tests")
    for verdict in ("not found", "undecided"):
        if names := [name for name, each in verdicts.items() if each == verdict]:
            lines.append(f"{verdict}: {'; '.join(names)}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, default=ROOT, metavar="DIR", help="the checkout; this one by default")
    parser.add_argument("--list", type=Path, default=LIST, metavar="FILE", help="of the defects; %(default)s")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one defect; may be repeated")
    parser.add_argument("--room", action="append", default=[], help="one room's defects; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="how many test processes at once; %(default)s")
    parser.add_argument("--limit", type=float, default=900, metavar="SECONDS", help="of one process; %(default)s")
    parser.add_argument("--wrap", default="", metavar="WORDS", help="put before each command, such as nice")
    parser.add_argument("--results", type=Path, metavar="FILE", help="build/mutants/NAME OF THE CHECKOUT.json")
    args = parser.parse_args(argv)
    checkout = args.base.resolve()
    try:
        plan = read_plan(args.list)
        chosen = choose(plan, args)
    except UsageError as mistake:
        parser.error(str(mistake))
    results = Results(args.results or ROOT / "build" / "mutants" / f"{checkout.name}.json", checkout)
    missing = [defect for defect in chosen if not results.is_known(defect)]
    if missing:
        with making_copies(checkout, plan, args) as copies:
            for defect in judge_all(missing, copies, results, args.jobs):
                print(say(defect, results.defects[defect.name]), flush=True)
            doubt_tests(chosen, copies.get(), results)
    print(summarize(chosen, results))
    return 0 if all(results.defects[defect.name].verdict == "found" for defect in chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
