"""Does this code do what another checkout does, byte for byte? Tiny runs, tables, pages and hashes of both, compared.

Run: python benchmarks/frozen.py --against REPOSITORY

Everything is asked for by the command line, which is the same in both but for the names of verbs. A run counts by its
rows, its sums, its scores and its config's hash; what tells of time, machine and code does not, nor does white space
in pages. Exit code 1 names each thing that differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
from startup import lay_out

HERE = Path(__file__).resolve().parents[1]
TRIO = """\
description: one single-task, one two-task and one four-task client
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth, edge, normals, semseg], id: four}
  - {dataset: pascal, tasks: [sal], id: one}
  - {dataset: pascal, tasks: [human_parts, edge], id: two}
"""
UNSEEN = f"{TRIO}  - {{dataset: nyud, tasks: [depth], id: stranger, unseen: true}}\nevaluation: [global, unseen]\n"
SIZES = {
    "data.size": {"pascal": [32, 32], "nyud": [32, 32]},
    "data.train_samples": {"pascal": 8, "nyud": 4},
    "data.test_samples": {"pascal": 2, "nyud": 2},
    "model.backbone": "swin_nano",
    "model.pretrained": False,
    "train.batch_size": 4,
}
OWN_METHOD = """\
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.fedavg import FedAvg
from frozen_helper import TITLE


@ALGORITHMS.register("frozen_own")
class Own(FedAvg):
    title, paper = TITLE, "none"
"""
OWN_METRIC = """\
from fmtlbench.metrics import METRICS, Metric


@METRICS.register("far_error")
class FarError(Metric):
    label, unit, higher_is_better = "farErr", "m", False
    tasks = ("depth",)
    description = "mean absolute error beyond some metres"

    def __init__(self, *, beyond: float = 1.0):
        super().__init__(beyond=beyond)

    def update(self, prediction, target):
        far = (target > self.options["beyond"]) & (target < 255)
        self._add(error=((prediction - target).abs() * far).double().sum(), pixels=far.sum())

    def _score(self, sums):
        return sums["error"].item() / max(1, sums["pixels"].item()), {}
"""
FILES = {
    "trio.yml": TRIO,
    "unseen.yml": UNSEEN,
    "own.py": OWN_METHOD,
    "frozen_helper.py": 'TITLE = "Own"\n',
    "far_error.py": OWN_METRIC,
}
# What every run is asked with.
ALL = ["--scenario", "trio.yml", "--rounds", "3", "--device", "cpu", "--keep", "none", "--format", "tsv"]
ALL += [word for key, value in SIZES.items() for word in ("--set", f"{key}={json.dumps(value)}")]
FEDHCA2 = ["--algo", "fedhca2"]
# Name of a run → what it is asked for beside what all have. All methods and weightings join them.
RUNS = {
    "resnet": [*FEDHCA2, "--set", "model.backbone=resnet_nano"],
    "md": [*FEDHCA2, "--set", "model.architecture=md", "--set", 'data.size={"default": [32, 64]}'],
    "matfl network": [*FEDHCA2, "--set", "model.architecture=matfl", "--set", "model.backbone=resnet_nano"],
    "top k": [*FEDHCA2, "--set", "federation.compression=topk"],
    "quantized": ["--algo", "scaffold", "--set", "federation.compression=quantize"],
    "dropout": [*FEDHCA2, "--set", "federation.dropout=0.4"],
    "stragglers": ["--algo", "fednova", "--set", "federation.stragglers=0.6"],
    "participation": [*FEDHCA2, "--set", "federation.participation=0.5"],
    "noisy labels": ["--algo", "fedavg", "--set", "data.label_noise.four=0.5"],
    "validation": ["--algo", "local", "--set", "data.validation=0.3"],
    "predictions": [*FEDHCA2, "--save-predictions"],
    "unseen": [*FEDHCA2, "--scenario", "unseen.yml"],
    "own method": ["--algo", "./own.py"],
    "own metric": ["--algo", "local", "--set", "evaluation.metrics.depth=./far_error.py"],
    "ray": [*FEDHCA2, "--executor", "ray"],
}
# What stored runs were made of: their data, tasks and scenarios decide which code counts as theirs.
for scenario in ("st_mt_1", "iid1_sdmt", "probe_scarce"):
    few = ["--set", 'data.train_samples={"pascal": 16, "nyud": 16}', "--rounds", "1"]
    RUNS[f"small {scenario}"] = ["--algo", "local", "--scenario", scenario, *few]
KILLED = "killed and resumed"
SAME_CODE = HERE / "fmtlbench" / "runs" / "same_code.json"
TABLES = {
    "leaderboard": ["leaderboard", "results/leaderboard"],
    "leaderboard, fairness": ["leaderboard", "results/leaderboard", "--fairness", "--format", "md"],
    "leaderboard, latex": ["leaderboard", "results/nano-3", "--format", "latex", "--standalone"],
    "leaderboard, csv": ["leaderboard", "results/nano-3", "--format", "csv"],
    "leaderboard, json": ["leaderboard", "results/nano-1", "--format", "json"],
    "site": ["leaderboard", "results/nano-3", "--format", "html", "-o", "site"],
    "stats": ["stats", "results/leaderboard", "--scenario", "st_mt_1", "--format", "json"],
    "stats, figures": ["stats", "results/nano-3", "-o", "stats"],
    "noise": ["stats", "--noise", "results/leaderboard"],
    "noise, json": ["stats", "--noise", "results/nano-1", "--format", "json"],
    "cost": ["cost", "results/leaderboard"],
    "cost, as published": ["cost", "results/nano-3", "--convention", "fmtl-bench", "--format", "latex"],
    "compare": ["papers", "compare", "results/leaderboard", "--published", "fedhca2_table1_st_mt_1"],
    "papers": ["papers", "list"],
    "claims": ["papers", "claims"],
    "recipes": ["papers", "reproduce"],
    "plot": ["plot", "rounds", "results/nano-3", "-o", "rounds.svg"],
    "runs": ["runs", "list", "results/leaderboard", "--sort", "name"],
}
# Words of today → those of checkouts that do not know them.
FORMER = {
    ("stats", "--noise"): ("stability",),
    ("papers", "compare"): ("compare",),
    ("papers", "list"): ("published",),
    ("papers", "claims"): ("published", "--claims"),
    ("papers", "reproduce"): ("reproduce",),
}
# What differs from minute to minute and from place to place.
PASSING = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*(\+00:00|Z)?|matplotlib\.org/?|(?<=#)[mp][0-9a-f]{10}|\d+ \w+ ago"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, metavar="REPOSITORY", help="another checkout, to compare with")
    parser.add_argument("--only", default="", metavar="TEXT", help="only what has this in its name")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what both made there")
    parser.add_argument(
        "--write-same-code", action="store_true", help="if nothing differs, runs of the other code count as of this one"
    )
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # the process that works with one checkout
    args = parser.parse_args()
    if args.inside:
        record(args.inside, args.only)
        return 0
    if args.against is None:
        parser.error("--against: which checkout?")
    with contextlib.ExitStack() as stack:
        folder = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        theirs = work_with(args.against, folder / "theirs", args.only)
        ours = work_with(HERE, folder / "ours", args.only)
    apart = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    for name in apart:
        print(f"differs: {name}: {theirs.get(name)} there, {ours.get(name)} here")
    print(f"{len(ours)} things compared, {len(apart)} differ")
    if args.write_same_code and not apart:
        write_same_code(folder / "theirs", folder / "ours")
    return 1 if apart else 0


def write_same_code(theirs: Path, ours: Path) -> None:
    """Write the table of codes that count as today's, from the codes of the tiny runs that both made."""
    table = json.loads(SAME_CODE.read_text())
    for then, now in zip(read_codes(theirs), read_codes(ours), strict=True):
        for part, digest in then.items():
            table["parts"].setdefault(part, {})[digest] = now[part]
    SAME_CODE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


def read_codes(place: Path) -> list[dict[str, str]]:
    """Return the parts of the code of every tiny run, in the order of their names."""
    manifests = sorted(place.glob("runs/**/manifest.json"))
    return [json.loads(file.read_text())["sessions"][-1]["code"]["parts"] for file in manifests]


def work_with(checkout: Path, place: Path, only: str) -> dict[str, str]:
    """Return what a checkout's package makes: name → sha256, found by a process of its own in a folder of its own."""
    place.mkdir(parents=True)
    (place / "results").symlink_to(HERE / "results")
    path = lay_out(checkout, place / "package")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{path}:{Path(__file__).parent}",
        "FMTLBENCH_CACHE": str(place / "cache"),
        "FMTLBENCH_ENERGY": "off",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
        "PYTHONHASHSEED": "0",  # scikit-posthocs draws the bars of a critical-difference diagram in the order of a set
    }
    words = [sys.executable, __file__, "--inside", str(place), "--only", only]
    with (place / "told.log").open("w") as told:
        subprocess.run(words, env=environment, cwd=place, stderr=told, check=True)
    return json.loads((place / "made.json").read_text())


def record(place: Path, only: str) -> None:
    """Do everything with the package that is on the path, and write what came of it to made.json."""
    for name, text in FILES.items():
        (place / name).write_text(text)
    made: dict[str, str] = {}
    for kind in (do_runs, read_hashes, make_tables):
        made |= {name: hash_of(content) for name, content in kind(place, only)}
    (place / "made.json").write_text(json.dumps(made, indent=1))


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def do_runs(place: Path, only: str) -> Iterator[tuple[str, bytes]]:
    """Do the tiny runs; yield what each left that time and machine have no part in."""
    listed = json.loads(ask("list", "--json"))
    methods = {f"method {one['name']}": ["--algo", one["name"]] for one in listed["algorithms"]}
    weightings = {f"weighting {one['name']}": ["--algo", f"fedavg+{one['name']}"] for one in listed["weightings"]}
    methods["method mas"] += ["--set", "algo.unknown=mean"]
    for name, words in {**methods, **weightings, **RUNS, KILLED: FEDHCA2}.items():
        if only in name:
            out = Path("runs") / name.replace(" ", "_")
            asked = ["run", *ALL, *words, "--out", str(out)]
            if name == KILLED:
                kill_after_a_round(asked, out)
            yield f"{name}: answer", ask(*asked, may_fail=True).encode()
            for summary in sorted(out.rglob("summary.json")):
                yield from read_run(summary.parent, name)


def read_run(run: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield what a finished run holds that decides or is decided by numbers."""
    summary = json.loads((run / "summary.json").read_text())
    yield f"{name}: folder", run.name.encode()
    yield f"{name}: scores", json.dumps(summary["scores"]).encode()
    yield f"{name}: rows", (run / "metrics.jsonl").read_bytes()
    with np.load(run / "sums.npz") as sums:
        yield f"{name}: sums", b"".join(key.encode() + sums[key].tobytes() for key in sorted(sums.files))
    for file in sorted((run / "predictions").rglob("*.*")):
        yield f"{name}: {file.relative_to(run)}", file.read_bytes()


def kill_after_a_round(asked: list[str], out: Path) -> None:
    """Begin a run in a process of its own, and kill that after the first round."""
    process = subprocess.Popen([sys.executable, "-m", "fmtlbench", *asked], stdout=subprocess.DEVNULL)
    while process.poll() is None and not any(file.stat().st_size for file in out.rglob("metrics.jsonl")):
        time.sleep(0.01)
    process.kill()
    process.wait()


def read_hashes(place: Path, only: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name, with its hash, that the run of every stored config has today."""
    for file in sorted((HERE / "results").rglob("config.yaml")):
        name = str(file.parent.relative_to(HERE))
        if only in name:
            yield (
                name,
                ask("show", "config", "--config", f"{name}/config.yaml", may_fail=True).partition("\n")[0].encode(),
            )


def make_tables(place: Path, only: str) -> Iterator[tuple[str, bytes]]:
    """Yield the tables and pages of the stored runs."""
    for name, words in TABLES.items():
        if only in name:
            before = {file for file in place.rglob("*") if file.is_file()}
            yield name, ask(*words, may_fail=True).encode()
            for file in sorted(set(place.rglob("*.*")) - before):
                if file.is_file() and file.suffix not in (".pdf", ".png", ".pyc", ".nbc", ".nbi"):
                    yield f"{name}: {file.relative_to(place)}", read_text(file)


def read_text(file: Path) -> bytes:
    """Read a file without what passes; of pages the words and marks, however these are spelt."""
    content = PASSING.sub(b"", file.read_bytes())
    if file.suffix != ".html":
        return content
    return re.sub(r"></(rect|path)>", "/>", "".join(unescape(content.decode()).split())).encode()


def ask(*words: str, may_fail: bool = False) -> str:
    """Return what a command prints; where today's verb is unknown, the former one is asked."""
    from fmtlbench.cli import VERBS
    from fmtlbench.cli import main as fmtlbench

    for today, former in FORMER.items():
        if words[: len(today)] == today and former[0] in VERBS:
            words = (*former, *words[len(today) :])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = fmtlbench(list(words))
    if code and not may_fail:
        raise RuntimeError(f"fmtlbench {' '.join(words)} ended with exit code {code}")
    return PASSING.sub(b"", said.getvalue().encode()).decode()


if __name__ == "__main__":
    sys.exit(main())
