"""`fmtlbench plot` as a user meets it: every kind writes its file, every mistake is one line."""

from __future__ import annotations

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


def test_a_bad_name_is_told_before_the_work(capsys, tmp_path):
    assert main(["plot", "rounds", str(tmp_path / "nowhere"), "-o", "a.jpg"]) == 2
    assert "expected a name ending in .pdf, .png, .svg" in capsys.readouterr().err
