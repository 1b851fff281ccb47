"""`fmtlbench plot` as a user meets it: every kind writes its file, every mistake is one line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from made_rounds import write_rounds
from made_runs import DUO

from fmtlbench.cli import main

TRIPLE = {**DUO, "pascal-edge": ("pascal", ("edge",))}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("plots") / "runs"
    for name in ("local", "fedavg", "matfl", "fedhca2"):
        write_rounds(root, name, clients=TRIPLE, scenario="trio")
        write_rounds(root, name, clients=DUO, scenario="scale", setting="a" * 64)
        write_rounds(root, name, clients=TRIPLE, scenario="scale", setting="b" * 64)
    return root


@pytest.mark.parametrize(
    "kind, below, options",
    [
        ("rounds", ".", ["--scenario", "trio"]),
        ("rounds", ".", ["--task", "all"]),
        ("clients", "scale", []),
        ("clients", "scale", ["--task", "semseg", "--dataset", "nyud"]),
        ("sweep", "scale", ["--option", "clients", "--delta-over", "clients"]),
        ("hyperweights", "trio", ["--round", "2"]),
        ("grouping", "trio", ["--client", "nyud-multi"]),
        ("updates", "trio/fedavg", ["--raw"]),
        ("pareto", "trio", ["--cost", "bytes"]),
        ("cd", "trio", []),
        ("pvalues", "trio", ["--correction", "bonferroni"]),
        ("distribution", "trio", []),
    ],
)
def test_every_kind_writes_pdf_and_png(runs, tmp_path, capsys, kind, below, options):
    assert main(["plot", kind, str(runs / below), "-o", str(tmp_path / kind), *options]) == 0
    files = [tmp_path / f"{kind}.pdf", tmp_path / f"{kind}.png"]
    assert capsys.readouterr().out.split() == [str(file) for file in files]
    assert files[0].read_bytes().startswith(b"%PDF") and files[1].read_bytes().startswith(b"\x89PNG")
    assert all(file.stat().st_size > 3000 for file in files)


@pytest.mark.parametrize(
    "argv, code, words",
    [
        (["round", "."], 2, "no kind of figure 'round'; did you mean 'rounds'"),
        (["distribution", "."], 2, "choose one with --scenario: scale, trio"),
        (["rounds", "trio/fedavg"], 1, "Δm needs the local run"),
        (["rounds", "trio", "--x", "days"], 2, "no x axis 'days'"),
        (["cd", "trio/fedavg"], 1, "no two methods have a common block"),
        (["hyperweights", "trio/local"], 2, "no alpha and beta in the rounds of the"),
        (["clients", "trio"], 1, "at least two numbers of clients"),
        (["sweep", "trio"], 2, "sweep: which option? For example --option algo.friends"),
        (
            ["sweep", "trio", "--option", "train.rl"],
            2,
            "--option: no value of a setting 'train.rl'; did you mean 'train.lr'",
        ),
        (["updates", "trio/fedavg", "--method", "umap"], 2, "--method: no method 'umap'"),
        (["rounds", "nowhere"], 2, "no such folder"),
    ],
)
def test_mistakes_are_one_line(runs, tmp_path, capsys, argv, code, words):
    kind, below, *options = argv
    assert main(["plot", kind, str(runs / below), "-o", str(tmp_path / "a.png"), *options]) == code
    out, err = capsys.readouterr()
    assert not out and words in err and err.count("\n") == 1 and not list(tmp_path.iterdir())


def test_a_bad_name_is_told_before_the_work(capsys, tmp_path):
    assert main(["plot", "rounds", str(tmp_path / "nowhere"), "-o", "a.jpg"]) == 2
    assert "expected a name ending in .pdf, .png, .svg" in capsys.readouterr().err


def test_never_imports_torch(runs, tmp_path):
    code = (
        "import sys; from fmtlbench.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code or any(name in sys.modules for name in ('torch', 'timm')))"
    )
    argv = [sys.executable, "-c", code, "plot", "rounds", str(runs / "trio"), "-o", str(tmp_path / "a.svg")]
    assert subprocess.run(argv, capture_output=True).returncode == 0 and (tmp_path / "a.svg").exists()
