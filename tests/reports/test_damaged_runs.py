"""Verbs that read runs × kinds of damage: the damaged run is left out with its reason, the others are shown."""

from __future__ import annotations

import json
import os

import pytest
from made_rounds import write_rounds
from made_runs import ST_MT_1

from fmtlbench.cli import main

NEEDED = {"summary.json": "scores", "metrics.jsonl": "round", "manifest.json": "sessions"}  # of others: seconds


def drop_key(file):
    record = json.loads(file.read_text().splitlines()[0] if file.suffix == ".jsonl" else file.read_text())
    record.pop(NEEDED.get(file.name, "seconds"))
    file.write_text(json.dumps(record) + "\n")


def newer_format(file):
    first, *rest = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    file.write_text("\n".join([json.dumps({**json.loads(first), "format": 99}), *rest]) + "\n")


def loop(file):
    file.unlink()
    file.symlink_to(file.name)


def pipe(file):
    file.unlink()
    os.mkfifo(file)


DAMAGES = {
    "another shape": lambda file: file.write_text("[1, 2]\n"),
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:40] + b"\n"),
    "binary": lambda file: file.write_bytes(b"\x00\xff\xfe\n" * 20),
    "deep": lambda file: file.write_text("[" * 100_000 + "\n"),
    "huge number": lambda file: file.write_text('{"seed": ' + "9" * 5000 + "}\n"),
    "key missing": drop_key,
    "newer format": newer_format,
    "link to itself": loop,
    "pipe": pipe,
}
FIGURE = ("-o", "figure.png")
VERBS = {  # argv → the files of a run that it reads beside summary.json
    ("leaderboard",): (),
    ("leaderboard", "--fairness"): (),
    ("leaderboard", "--spread", "clients"): (),
    ("stats",): (),
    ("stats", "--noise"): ("manifest.json",),
    ("export",): (),
    ("export", "--format", "json"): (),
    ("papers", "compare", "--published", "fedhca2_table1_st_mt_1"): (),
    ("cost",): ("cost.json", "metrics.jsonl", "timing.jsonl"),
    ("plot", "rounds", *FIGURE): ("metrics.jsonl",),
    ("plot", "rounds", "--x", "hours", *FIGURE): ("timing.jsonl",),
    ("plot", "pareto", *FIGURE): ("cost.json",),
    ("plot", "cd", *FIGURE): (),
    ("plot", "pvalues", *FIGURE): (),
    ("plot", "distribution", *FIGURE): (),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole")
    for method in ("local", "fedavg", "fedper", "fedhca2"):
        for seed in (0, 1):
            write_rounds(root / "runs", method, seed, ST_MT_1, rounds=2, scenario="st_mt_1")
    return root


@pytest.fixture
def runs(whole, tmp_path, monkeypatch):
    """A copy of the runs in the working directory, and the folder of the one that is to be damaged."""
    import shutil

    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return next((tmp_path / "runs/st_mt_1/fedavg").glob("nano-synth-s1-*"))


# One reader of all: every damage with two verbs, some with all.
PAIRS = [
    pytest.param(argv, damage, id=f"{' '.join(argv)}, {damage}")
    for argv in VERBS
    for damage in DAMAGES
    if argv in (("leaderboard",), ("plot", "rounds", *FIGURE)) or damage in ("another shape", "pipe", "newer format")
]


@pytest.mark.parametrize(("argv", "damage"), PAIRS)
def test_a_damaged_run_is_left_out_with_its_reason(runs, capsys, argv, damage):
    for name in VERBS[argv] or ("summary.json",):
        kept = (runs / name).read_bytes()
        DAMAGES[damage](runs / name)
        code, (_, err) = main(list(argv)), capsys.readouterr()
        assert code == 0, err
        (left_out,) = [line for line in err.splitlines() if line.startswith("left out: ")]
        assert runs.name in left_out and name in left_out
        (runs / name).unlink(missing_ok=True)
        (runs / name).write_bytes(kept)
    assert main(list(argv)) == 0 and "left out" not in capsys.readouterr().err


def test_the_site_goes_on_without_a_damaged_run(runs, capsys):
    (runs / "metrics.jsonl").write_text('{"round": "one"}\n')
    assert main(["leaderboard", "--format", "html", "-o", "site"]) == 0
    assert "metrics.jsonl, line 1" in capsys.readouterr().err


def test_a_run_without_rows_is_left_out_of_figures_over_rounds(runs, capsys):
    (runs / "metrics.jsonl").unlink()
    assert main(["plot", "rounds", *FIGURE]) == 0
    assert "left out: st_mt_1/fedavg" in capsys.readouterr().err
