"""`fmtlbench plot` as a user meets it: every kind writes its file, every mistake is one line."""

from __future__ import annotations

import pytest
from made_rounds import write_rounds
from made_runs import DUO

from fmtlbench.cli import main
from fmtlbench.reports import plots

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


TOY = '''\
# A toy.
"""how many runs there are; --scenario.

More that no help says.
"""

from ..figure_style import new_figure

SHOWS_DELTA = True


def reads(options):
    return ("cost",) if options.x == "hours" else ()


def draw(collection, options, notes):
    notes.append(f"{len(collection.runs)} runs")
    figure = new_figure(1.0)
    figure.add_subplot(title=options.scenario)
    return figure
'''


def test_a_new_kind_is_one_new_file(runs, tmp_path, capsys, monkeypatch):
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "_no_kind.py").write_text("")
    (tmp_path / "bare.py").write_text("def draw(collection, options, notes):\n    return None\n")
    monkeypatch.setattr(plots, "__path__", [*plots.__path__, str(tmp_path)])
    assert [*plots.find_kinds()] == [*plots.ORDER, "bare", "toy"]
    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    listed = "; --scenario\n  bare\n  toy            how many runs there are; --scenario\n\n"
    assert listed in capsys.readouterr().out
    assert main(["plot", "toy", str(runs / "trio"), "-o", str(tmp_path / "toy.svg"), "--scenario", "trio"]) == 0
    told = capsys.readouterr()
    assert told.out.split() == [str(tmp_path / "toy.svg")] and told.err == "4 runs\n"
    assert "trio" in (tmp_path / "toy.svg").read_text()
    assert plots.files_read("toy", plots.Options(x="hours")) == ("cost",)
    assert plots.files_read("bare", plots.Options()) == ()
    assert main(["plot", "bare", str(runs), "-o", str(tmp_path / "x.svg"), "--delta-over", "clients"]) == 2
    assert "are for rounds, clients, sweep, pareto, toy: bare shows no Δm" in capsys.readouterr().err
    assert main(["plot", "toyy", str(runs), "-o", str(tmp_path / "x.svg")]) == 2
    assert "did you mean 'toy'" in capsys.readouterr().err
