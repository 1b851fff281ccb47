"""Mistakes at the verbs that read runs: one line that says what was given and what is near, and nothing written."""

from __future__ import annotations

import pytest
from made_rounds import write_rounds
from made_runs import DUO, ST_MT_1

from fmtlbench.cli import main

PLOT = ("-o", "OUT/a.png")
MISTAKES = [  # argv, exit code, words
    (["leaderboard", "RUNS", "--scenario", "dua"], 2, "did you mean 'duo'"),
    (["leaderboard", "RUNS", "--split", "personal"], 2, "splits: global"),
    (["leaderboard", "RUNS", "--sort", "dlta"], 2, "did you mean 'delta"),
    (["leaderboard", "RUNS", "--baseline", "fedavgg"], 2, "did you mean 'fedavg'"),
    (["leaderboard", "RUNS", "-o", "/nowhere/at/all.md"], 2, "no folder /nowhere/at"),
    (["leaderboard", "RUNS", "--format", "html"], 2, "give it with -o DIR"),
    (["leaderboard", "RUNS", "--rows", ""], 2, "expected names"),
    (["leaderboard", "SCALE", "--task-weights", "sal=2"], 2, "no run has sal"),
    (["leaderboard", "RUNS", "--task-weights", "depth=1,depth=2"], 2, "given twice"),
    (["leaderboard", "RUNS", "--baseline", "fedavg", "--reference", "algo=local"], 2, "give one of them"),
    (["stats", "RUNS", "--correction", "hochberg"], 2, "correction 'hochberg'"),
    (["stats", "RUNS", "--scenario", "dua"], 2, "did you mean 'duo'?"),
    (["stats", "RUNS", "--alpha", "1.5"], 2, "between 0 and 1"),
    (["stats", "RUNS", "--pair", "fedavg"], 2, "expected two different methods"),
    (["stats", "RUNS", "--split", "personal"], 2, "valid: global"),
    (["stats", "LOCAL"], 1, "no two methods have a common block"),
    (["stats", "--noise", "RUNS", "--power", "1"], 2, "--power 1: expected a probability between 0 and 1"),
    (["stats", "--noise", "RUNS", "--pair", "fedavg"], 2, "expected two different methods"),
    (["stats", "--noise", "RUNS", "--pair", "fedavg,fedhca"], 2, "did you mean"),
    (["stats", "--noise", "RUNS", "--scenario", "dua"], 2, "did you mean 'duo'?"),
    (["stats", "--noise", "RUNS", "--split", "personal"], 2, "no finished run has scores on the 'personal' split"),
    (["stats", "--noise", "RUNS", "--baseline", "lokal"], 2, "did you mean 'local'"),
    (["stats", "--noise", "RUNS", "--published", "fedhca2_table1_st_mt_1"], 2, "the runs are of duo"),
    (["stats", "--noise", "RUNS", "--standalone"], 2, "belongs to --format latex"),
    (["stats", "--noise", "RUNS", "--setting", "ffff"], 2, "no run has it"),
    (["cost", "RUNS", "--target", "nan"], 2, "--target nan: expected a percentage such as -10"),
    (["cost", "RUNS", "--scenario", "du"], 2, "did you mean 'duo'"),
    (["cost", "RUNS", "--format", "json", "--standalone"], 2, "belongs to --format latex"),
    (["cost", "RUNS", "--over", "x.yml", "--convention", "fmtl-bench"], 2, "--over x.yml: counts time in"),
    (["plot", "distribution", "RUNS", "--delta-over", "clients", *PLOT], 2, "shows no Δm"),
    (["plot", "round", "RUNS", *PLOT], 2, "no kind of figure 'round'; did you mean 'rounds'"),
    (["plot", "distribution", "MORE", *PLOT], 2, "choose one with --scenario: duo, scale"),
    (["plot", "rounds", "FEDAVG", *PLOT], 1, "Δm needs the local run"),
    (["plot", "rounds", "RUNS", "--x", "days", *PLOT], 2, "no x axis 'days'"),
    (["plot", "cd", "FEDAVG", *PLOT], 1, "no two methods have a common block"),
    (["plot", "hyperweights", "LOCAL", *PLOT], 2, "no alpha and beta in the rounds of the"),
    (["plot", "clients", "RUNS", *PLOT], 1, "at least two numbers of clients"),
    (["plot", "sweep", "RUNS", *PLOT], 2, "sweep: which option? For example --option algo.friends"),
    (["plot", "sweep", "RUNS", "--option", "train.rl", *PLOT], 2, "no value of a setting 'train.rl'; did you mean"),
    (["plot", "rounds", "NOWHERE", *PLOT], 2, "no such folder"),
]  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("mistakes")
    for name in ("local", "fedavg", "ditto", "fedhca2"):
        for seed in (0, 1):
            write_rounds(root / "runs", name, seed, clients=ST_MT_1)
    write_rounds(root / "more", "local", clients=DUO, scenario="scale")
    write_rounds(root / "paper", "local", clients=ST_MT_1, scenario="st_mt_1")
    return root


@pytest.mark.parametrize(("argv", "code", "words"), MISTAKES)
def test_a_mistake_is_one_line(runs, tmp_path, capsys, argv, code, words):
    places = {
        "RUNS": [runs / "runs"],
        "MORE": [runs / "runs", runs / "more"],
        "SCALE": [runs / "more"],
        "NOWHERE": [runs / "nowhere"],
    }
    places |= {name.upper(): [runs / "runs" / "duo" / name] for name in ("local", "fedavg")}
    line = [str(folder) for word in argv for folder in places.get(word, [word.replace("OUT", str(tmp_path))])]
    assert main(line) == code
    out, err = capsys.readouterr()
    assert not out and words in err and err.count("\n") == 1 and not list(tmp_path.iterdir())
