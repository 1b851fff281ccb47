"""Run folders of which something is damaged, and every verb that reads runs."""

from __future__ import annotations

import functools
import json
import tempfile
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import yaml
from cases import ODD_TEXT, ODD_YAML, Case, Fifo, Link, altered, encoded, near, odd_value, yaml_text
from hypothesis import strategies as st
from kit import DUO, TINY, as_flags
from made_rounds import write_rounds
from made_runs import ST_MT_1, write_absence
from robots import robots

# Trained, with what is kept of their networks; two leave what `plot hyperweights` and `plot grouping` draw.
METHODS = {"local": "last", "fedhca2": "last", "matfl": "none"}
WITH_CHECKPOINT = "fedhca2"  # as after a kill right behind the summary
BINARY = (".safetensors", ".npz")  # endings of files that are not text
FLAGS = tuple(as_flags(TINY))
_made: list[tempfile.TemporaryDirectory] = []  # removed when Python ends


@functools.cache
def trained_runs() -> Path:
    """A folder with duo.yml and runs/: three methods trained for two rounds."""
    import fmtlbench
    from fmtlbench.runs.store import RunStore

    folder = new_folder()
    (folder / "duo.yml").write_text(DUO)
    given = {"scenario": str(folder / "duo.yml"), "rounds": 2, "out": folder / "runs", "device": "cpu", **TINY}
    for method, keep in METHODS.items():
        leaves = mock.patch.object(RunStore, "remove_surplus") if method == WITH_CHECKPOINT else nullcontext()
        with leaves:
            fmtlbench.run(method, keep=keep, **given)
    return folder


@functools.cache
def written_runs() -> Path:
    """A folder with runs/: three methods of st_mt_1 with two seeds, not trained; and one that failed."""
    folder = new_folder()
    for seed in range(2):
        for method in ("local", "fedavg", "fedhca2"):
            write_rounds(folder / "runs", method, seed, ST_MT_1, rounds=2, scenario="st_mt_1")
    write_absence(folder / "runs", "failed", scenario="st_mt_1", algorithm="fedprox")
    return folder


def new_folder() -> Path:
    """An empty folder that is there until Python ends."""
    _made.append(tempfile.TemporaryDirectory(prefix="fuzz-"))
    return Path(_made[-1].name)


# -- damage ------------------------------------------------------------------------------------------------------------

SHAPES = (
    b"", b"\n", b"{}", b"[]", b"null", b"3", b'"x"', b"[{}]", b'{"format": 2}', b"\x00" * 100, b"\xff\xfe{", b"{",
    b"[" * 100_000, b'{"a":' * 50_000, b'{"seed": ' + b"9" * 5000 + b"}", b'{"a": 1e999}', b"\xef\xbb\xbf{}",
)  # fmt: skip
INSTEAD = (None, Link("gone"), Link("summary.json"), Link("."), Link("/dev/zero"), Link("/dev/null"), Fifo())


@st.composite
def damaged(draw, name: str, content: bytes):
    """The file with something wrong: mostly one value, else its bytes, its shape, or what it is at all."""
    how = draw(st.sampled_from(("value",) * 6 + ("format", "cut", "shape", "bytes", "instead", "lines")))
    if how == "instead":
        return draw(st.sampled_from(INSTEAD))
    if how == "shape":
        return draw(st.sampled_from(SHAPES))
    if how == "cut":
        return content[: draw(st.integers(0, len(content)))]
    if how == "bytes" or name.endswith(BINARY):
        place = draw(st.integers(0, len(content)))
        return content[:place] + draw(st.binary(min_size=1, max_size=8)) + content[place + draw(st.integers(0, 8)) :]
    if name.endswith(".yaml"):
        return encoded(draw(yaml_text(yaml.safe_load(content))))
    lines = content.splitlines() if name.endswith(".jsonl") else [content]
    place = draw(st.integers(0, len(lines) - 1))
    if how == "lines":
        lines = draw(st.sampled_from((lines[1:], lines[::-1], lines + lines, lines[:-1], [b"", *lines], lines[:1] * 3)))
    elif how == "format":
        number = draw(st.sampled_from((99, 0, -1, 1, 2.0, "2", None, True, [2], 10**30)))
        lines[place] = json.dumps({**json.loads(lines[place]), "format": number}).encode()
    else:
        lines[place] = draw(_changed(json.loads(lines[place])))
    return b"\n".join(lines) + b"\n"


@st.composite
def _changed(draw, record: dict):
    """The record with a value changed, or with two parts of it that contradict each other."""
    if draw(st.integers(0, 3)):
        return json.dumps(draw(altered(record))).encode()
    key = draw(st.sampled_from(sorted(record)))
    value = draw(st.one_of(near(record[key]), odd_value)) if draw(st.booleans()) else record[key]
    scores = record.get("scores")
    if scores:  # of nobody, of no task, twice, none at all, or without a direction
        one = draw(st.sampled_from(scores))
        other = draw(
            st.sampled_from(
                (
                    {**one, "client": "nobody"},
                    {**one, "task": "nothing"},
                    {**one, "metric": "other"},
                    {**one, "value": None},
                    {**one, "value": float("nan")},
                    {**one, "value": 1e308},
                    {**one, "higher_is_better": not one.get("higher_is_better")},
                    {**one, "split": "elsewhere"},
                    one,
                )
            )
        )
        many = draw(st.sampled_from(([*scores, other], [other, *scores[1:]], [other], scores[1:])))
        record = {**record, "scores": many}
    return json.dumps({**record, key: value}).encode()


# -- readers -----------------------------------------------------------------------------------------------------------

PLOTS = ("rounds", "clients", "pareto", "hyperweights", "grouping", "updates", "cd", "pvalues", "distribution")
REPORTS = (
    ("leaderboard",),
    ("leaderboard", "--fairness", "--format", "latex"),
    ("leaderboard", "--spread", "clients", "--delta-over", "clients"),
    ("leaderboard", "--rows", "algorithm,rounds"),
    ("leaderboard", "--reference", "algo=local"),
    ("stats",),
    ("stats", "-o", "figures"),
    ("stats", "--noise"),
    ("stats", "--noise", "--format", "json"),
    ("cost",),
    ("cost", "--target", "-50", "--format", "json"),
    ("export",),
    ("export", "--format", "json"),
    ("papers", "compare", "--published", "fedhca2_table1_st_mt_1"),
    *(("plot", kind, "-o", "figure.png") for kind in PLOTS),
    ("plot", "rounds", "--x", "kwh", "-o", "figure.svg"),
    ("plot", "rounds", "--x", "hours", "--task", "edge", "-o", "figure.pdf"),
    ("plot", "pareto", "--cost", "kwh", "-o", "figure.png"),
    ("plot", "sweep", "--option", "train.lr", "-o", "figure.png"),
    ("plot", "sweep", "--option", "algo.mu", "--task", "all", "-o", "figure.png"),
    ("plot", "clients", "--task", "edge", "-o", "figure.png"),
)

SITE = ("leaderboard", "--format", "html", "-o", "site")  # takes as long as a hundred tables


@st.composite
def damaged_reports(draw):
    """A report about runs of which one is damaged."""
    template = draw(st.sampled_from((written_runs, trained_runs)))()
    files = sorted(f for f in template.glob("runs/**/*") if f.suffix in (".json", ".jsonl", ".yaml") and f.is_file())
    files = [file for file in files if not {"checkpoint", "networks"} & set(file.parts)]
    important = [file for file in files if file.name in ("summary.json", "metrics.jsonl", "cost.json")]
    file = draw(st.sampled_from(important if draw(st.booleans()) else files))
    argv = draw(st.sampled_from(REPORTS)) if draw(st.integers(0, 40)) else SITE
    name = str(file.relative_to(template))
    return Case("report", argv, {name: draw(damaged(name, file.read_bytes()))}, str(template), lists_first=True)


@st.composite
def damaged_resumes(draw):
    """A run that is asked for again, predicted with, or planned beside, whose folder is damaged."""
    template = trained_runs()
    method = draw(st.sampled_from([*METHODS]))
    run, folder = run_of(method)
    asked = ("--scenarios" if (verb := draw(st.sampled_from(("run", "run", "predict", "bench")))) == "bench" else
             "--scenario", "duo.yml", "--rounds", "2", *FLAGS, "--device", "cpu")  # fmt: skip
    argv = {
        "run": ("run", "--algo", method, *asked, "--no-energy"),
        "bench": ("bench", "--algos", method, *asked, *(("--dry-run",) if draw(st.booleans()) else ("--no-local",))),
        "predict": ("predict", run, "--limit", "1", "--device", "cpu"),
    }[verb]
    return Case("resume", argv, draw(damaged_folder(run, folder)), str(template), lists_first=True)


def run_of(method: str) -> tuple[str, Path]:
    """The folder of a trained run: relative to the template, and where it is."""
    folder = next((trained_runs() / "runs/duo" / method).iterdir())
    return str(folder.relative_to(trained_runs())), folder


@st.composite
def damaged_folder(draw, run: str, folder: Path):
    """Files of a run by path: one is damaged, and the run may have been interrupted."""
    changes = {}
    if draw(st.booleans()):
        changes[f"{run}/summary.json"] = None  # interrupted
        if WITH_CHECKPOINT in run and draw(st.booleans()):
            changes[f"{run}/checkpoint/round-00002/index.json"] = None
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != ".lock"]
    weights = [file for file in files if file.suffix in BINARY]
    text = [file for file in files if file.suffix not in BINARY and file.name != "index.json"]
    file = draw(st.sampled_from(sorted(draw(st.sampled_from((text, text, text, weights, files))))))
    name = f"{run}/{file.relative_to(folder)}"
    changes[name] = draw(damaged(name, file.read_bytes()))
    return changes


@st.composite
def damaged_looks(draw):
    """A look at stored runs of which one is damaged: a list, one in full, two compared, networks exported."""
    method, other = draw(st.sampled_from([*METHODS])), draw(st.sampled_from([*METHODS]))
    (run, folder), (second, _) = run_of(method), run_of(other)
    argv = draw(
        st.sampled_from(
            (
                ("runs",),
                ("runs", "--format", "json", "--sort", draw(st.sampled_from(("method", "age", "size")))),
                ("runs", "list", "runs", "--state", "damaged"),
                ("runs", "list", "--seed", "0", "--algo", method),
                ("runs", "show", run),
                ("runs", "show", method, "--json"),
                ("runs", "show", draw(st.sampled_from(ODD_TEXT))),
                ("runs", "diff", run, second),
                ("runs", "diff", second, run, "--format", "json"),
                ("runs", "rm", run, "--yes"),
                ("export", "--weights", run, "-o", draw(st.sampled_from(("card", "card", "runs", "duo.yml", "-")))),
                ("export", "--weights", method, "-o", "card", "--client", draw(st.sampled_from(("nyud-multi", "x")))),
            )
        )
    )
    return Case("runs", argv, draw(damaged_folder(run, folder)), str(trained_runs()), lists_first=True)


# -- small YAML files --------------------------------------------------------------------------------------------------

DATASET = {
    "title": "My robots",
    "name": "robots",
    "description": "some",
    "tasks": {"semseg": {"classes": ["floor", "wall", "thing"]}, "depth": {}},
    "lists": {"train": "train.txt", "test": "test.txt"},
}
SETTINGS = {"data_root": "/no/where", "country": "DEU", "region": "hessen"}


@st.composite
def small_files(draw):
    """The description of a dataset, the user's settings, or a list of images."""
    what = draw(st.sampled_from(("dataset", "settings", "list")))
    if what == "settings":
        text = encoded(draw(yaml_text(SETTINGS)))
        argv = draw(st.sampled_from((("data", "check", "nyud"), ("run", "--algo", "local", "--scenario", "st_mt_1",
                                     "--preset", "paper", "--out", "runs"))))  # fmt: skip
        return Case("file", argv, {"mine.yml": text}, environment={"FMTLBENCH_CONFIG": "mine.yml"})
    files = robots()
    files["robots/dataset.yml"] = encoded(draw(yaml_text(DATASET)) if what == "dataset" else json.dumps(DATASET))
    if what == "list":
        ids = (b"", b"\n", b"\xff\xfe", b"a b", b"../0", b"0\n0\n", b"0\n1\nx\n", b"0" * 10**6, b"\x000\n", *ODD_BYTES)
        files["robots/train.txt"] = draw(st.sampled_from(ids))
    verbs = (
        ("data", "check", "robots/dataset.yml"),
        ("bench", "--algos", "local", "--scenarios", "s.yml", "--dataset-file", "robots/dataset.yml", "--dry-run"),
    )
    scenario = {"description": "d", "paper": "none", "version": 1}
    scenario["clients"] = [{"dataset": "robots", "tasks": ["semseg"], "count": 2}]
    files["s.yml"] = json.dumps(scenario).encode()
    return Case("file", draw(st.sampled_from(verbs)), files, lists_first=True)


ODD_BYTES = tuple(encoded(text) for text in ODD_YAML)
