"""`fmtlbench stats` as a user meets it."""

from __future__ import annotations

import csv
import io
import json

import pytest
from made_rounds import finals
from made_runs import ST_MT_1, write_run

from fmtlbench.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("stats") / "runs"
    for name in ("local", "fedavg", "ditto", "fedhca2"):
        for seed in (0, 1):
            write_run(root, algorithm=name, seed=seed, clients=ST_MT_1, values=finals(name, seed, ST_MT_1))
    return root


def test_table(runs, capsys):
    assert main(["stats", str(runs)]) == 0
    out = capsys.readouterr().out
    for words in ("4 methods on 9 blocks", "Friedman: χ²(3)", "F(3, 24)", "seeds (0, 1)", "p holm", "relative"):
        assert words in out
    assert out.index("FedHCA²") < out.index("FedAvg")  # the better rank first


def test_json_holds_every_number(runs, capsys):
    assert main(["stats", str(runs), "--format", "json", "--pair", "fedhca2,fedavg", "--alpha", "0.1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["blocks"]) == 9 and len(found["wilcoxon"]) == 6 and found["alpha"] == 0.1
    assert sum(found["average_ranks"].values()) == pytest.approx(10)
    assert found["critical_difference"] == pytest.approx(2.291 * (20 / 54) ** 0.5, abs=1e-3)
    i = found["improvement"]
    assert (i["a"], i["b"]) == ("FedHCA²", "FedAvg") and 0 < i["low"] <= i["probability"] <= i["high"] <= 1
    assert found["friedman"]["p"] < 0.05


def test_csv_and_markdown(runs, capsys):
    assert main(["stats", str(runs), "--format", "csv", "--correction", "bonferroni"]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out)))
    pairs = [row for row in rows if row["table"] == "pairs"]
    assert len(rows) == 4 + 6
    assert all(float(r["p_corrected"]) == pytest.approx(min(1, 6 * float(r["p_wilcoxon"]))) for r in pairs)
    assert "Friedman" in err
    assert main(["stats", str(runs), "--format", "md"]) == 0
    assert "| FedHCA² |" in capsys.readouterr().out


def test_figures_beside_the_table(runs, tmp_path, capsys):
    assert main(["stats", str(runs), "-o", str(tmp_path / "figures")]) == 0
    files = {path.name: path.read_bytes()[:4] for path in (tmp_path / "figures").iterdir()}
    assert set(files) == {"cd.pdf", "cd.png", "pvalues.pdf", "pvalues.png"}
    assert files["cd.pdf"] == b"%PDF" and files["pvalues.png"] == b"\x89PNG"


def test_two_methods(runs, tmp_path, capsys):
    paths = [str(runs / "duo" / name) for name in ("local", "fedhca2")]
    assert main(["stats", *paths, "-o", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "not tested" in out and "P(FedHCA² better than Local)" in out
    assert {path.name for path in tmp_path.iterdir()} == {"pvalues.pdf", "pvalues.png"}
