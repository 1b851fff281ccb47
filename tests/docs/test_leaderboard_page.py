"""docs/leaderboard is written from stored runs, and says what is missing of the grids."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import yaml
from rooms import ROOT

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UnknownNameError
from fmtlbench.bench.grid import Flags, read_grid
from fmtlbench.bench.plan import make_plan
from fmtlbench.config.request import RunRequest
from fmtlbench.scenarios import scenario_files

GRIDS = sorted((ROOT / "results" / "leaderboard" / "grids").glob("*.yml"))


@pytest.fixture(scope="module")
def writer():
    import write_leaderboard

    return write_leaderboard


def test_the_grids_have_the_whole_zoo_and_five_seeds_and_can_be_planned(tmp_path):
    asked = [yaml.safe_load(grid.read_text()) for grid in GRIDS]
    names = {name for grid in asked for name in [*grid["algos"], *(v["algo"] for v in grid.get("variants", ()))]}
    built_in = {name for name in ALGORITHMS if ALGORITHMS.home_of(name).startswith("fmtlbench.")}
    assert names == built_in
    assert all(grid["seeds"] == "0-4" and grid["scenarios"][0] in scenario_files() for grid in asked)
    template = RunRequest("", "", out=str(tmp_path))
    assert all(make_plan(read_grid(str(grid), Flags()).asked(), template, "cpu").runs for grid in GRIDS)


@pytest.fixture
def stored(tmp_path):
    """A folder of runs with a grid, as results/leaderboard is one."""
    runs = tmp_path / "runs"
    shutil.copytree(ROOT / "results" / "nano-3" / "iid1_sdmt", runs / "iid1_sdmt")
    (runs / "grids").mkdir()
    (runs / "grids" / "1-tiny.yml").write_text("algos: [local, fedper]\nscenarios: [iid1_sdmt]\nseeds: 0-1\n")
    return runs


def test_the_pages_have_tables_and_say_what_is_missing(writer, stored, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "ask_claims", lambda _runs: {"command": ["asked below"], "claims": 0, "tried": []})
    out, probes = tmp_path / "page", tmp_path / "probes.md"
    (stored / "reading.md").write_text("<!-- written for: iid1_sdmt 20 -->\nFedPer gains {iid1_sdmt: FedPer}.\n")
    assert writer.read_probes(probes) == "Not run yet."
    probes.write_text("| FedAvg | pass |\n")
    shutil.copytree(stored / "iid1_sdmt" / "fedper", tmp_path / "probes" / "probe_scarce" / "fedper")
    writer.write(stored, probes, out)
    assert "5 runs: 1 method on iid1_sdmt, of " in (out / "probes.md").read_text()
    assert (out / "probes.md").read_text().endswith("| FedAvg | pass |\n")
    page = (out / "README.md").read_text()
    # Runs of before code was recorded are in the tables, and count as missing for who runs the grid.
    assert "| 1-tiny | iid1_sdmt | 2 | 0 of 4 | all |" in page and "20 runs took" in page
    assert "\nFedPer gains +3.51† [+2.71, +4.30].\n" in page
    for name in writer.PAGES:
        assert f"]({name})" in page and "FedPer" in (out / name).read_text()
    for name, text in {"README.md": "| FedPer |", "tables.csv": "FedPer", "tables.tex": "FedPer"}.items():
        assert text in (out / name).read_text()
    assert (out / "site" / "index.html").is_file()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    writer.write(stored, probes, out)
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_papers_stand_beside_the_runs(writer, tmp_path):
    nano = ROOT / "results" / "nano-3"
    for folder in nano.glob("st_mt_1/*/*-s[01]-*"):
        shutil.copytree(folder, tmp_path / folder.relative_to(nano))
    page = writer.make_papers_page(tmp_path)
    assert "| FedHCA2 | published | 57.55 |" in page and "| FedHCA2 | measured |" in page
    assert re.search(r"^\| fedhca2\\_table1\\_st\\_mt\\_1 \| 4 \| – \| – \| -?[\d.]+ \| [\d.]+ \|$", page, re.M)
    claims = re.findall(r"^\| (fedhca2|fmtlbench|matfl)\b.*\| (holds|does not hold|undecided) \| .*\|$", page, re.M)
    assert len(claims) >= 3 and f"claims {len(claims)} can be asked" in page


def test_a_glance_has_the_highest_first_and_says_who_is_the_same(writer):
    def row(delta, score, seeds=5, low=None):
        cell = {"value": delta, "n": seeds, **({"low": low, "high": delta + 1, "signs": "†"} if low else {})}
        return {"x": {"value": score, "n": seeds}, "delta_m": cell, "seeds": {"value": seeds}}

    first = {"Local": row(0.0, 1.0), "Worse": row(-3.0, 0.5, 3, -4.5), "Better": row(2.0, 2.0, low=1.0)}
    second = {"Local": row(0.0, 4.0), "Twin": row(0.0, 4.0), "Ill": row(-1.0, None, 4)}
    null = {"x": {"value": None, "word": "NULL"}, "delta_m": {"value": None, "word": "NULL"}, "seeds": {"value": None}}
    second |= {"Refused": null, "Refused too": null}
    second["Ill"]["delta_m"] = None
    table = writer.show_at_a_glance([writer.Board("one", "one", first), writer.Board("two", "two", second)])
    assert [line for line in table.splitlines() if line.startswith("| ")] == [
        "| Δm % ↑ [95 %] | one | two |",
        "| Better | +2.00† [+1.00, +3.00] |  |",
        "| Local | 0.00 | 0.00 |",
        "| Worse | -3.00† [-4.50, -2.00] (3 seeds) |  |",
        "| Twin |  | 0.00 |",
        "| Ill |  |  (4 seeds) |",
        "| Refused |  | NULL |",
        "| Refused too |  | NULL |",
    ]
    assert "several names: Local, Twin on two." in table and "Seeds: 5." in table


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<!-- written for: iid1_sdmt 20 -->\n{iid1_smdt: FedPer}", r"\{iid1_smdt: FedPer\}: .* 'iid1_sdmt'"),
        ("<!-- written for: iid1_sdmt 20 -->\n{iid1_sdmt: FedPre}", "no method of iid1_sdmt 'FedPre'; .* 'FedPer'"),
        ("FedPer gains.", "expected <!-- written for"),
    ],
)
def test_a_reading_names_what_is_there(writer, stored, text, error):
    (stored / "reading.md").write_text(text)
    with pytest.raises((UnknownNameError, ValueError), match=error):
        writer.read_reading(stored / "reading.md", writer.read_boards(stored))


def test_a_reading_of_other_runs_says_so(writer, stored):
    (stored / "reading.md").write_text("<!-- written for: iid1_sdmt 12 -->\nAll is well.\n")
    text = writer.read_reading(stored / "reading.md", writer.read_boards(stored))
    assert text == "*Written when there were other runs: iid1_sdmt 12; now: iid1_sdmt 20.*\n\nAll is well."


def test_what_the_reading_says_beyond_its_fields(writer):
    """Numbers that are typed there, from the pages' tables and the stored runs."""
    text = " ".join((writer.RUNS / writer.READING).read_text(encoding="utf-8").split())
    chance, papers, probes = ((writer.FOLDER / name).read_text() for name in ("chance.md", "papers.md", "probes.md"))
    apart = re.findall(r"Holm\): (\d+) of 105 pairs", chance)
    assert f"{apart[1]} of 105 pairs of methods are apart on st_mt_1, {apart[0]} on iid1_sdmt" in text
    halves = re.findall(r"halves of the seeds \| 15 \| 5 \| 10 \| ([\d.]+) ", chance)
    assert f"(Kendall's τ {halves[1]} and {halves[0]})" in text
    tau, p = re.search(r"fedhca2\\_table1\\_st\\_mt\\_1 \| 8 \| – \| – \| ([\d.]+) \| ([\d.]+)", papers).groups()
    assert f"({tau} over eight methods, p = {float(p):.2f})" in text
    for method, words in (("FedHCA²", "gains {} points"), ("FedAvg", "FedAvg {}")):
        mean, low, high = re.search(rf"{method} \| \+([\d.]+) \[\+([\d.]+), \+([\d.]+)\]", probes).groups()
        assert f"{words.format(mean)} [{low}, {high}]" in text

    rounds = [json.loads(line) for file in writer.RUNS.glob("st_mt_1/fedamp/*/metrics.jsonl") for line in file.open()]
    attention = [round_["algorithm"]["strongest_attention"]["encoder"] for round_ in rounds]
    assert f"between {min(attention):.2f} and {max(attention):.2f} in all rounds" in text
    scores = [
        {
            (score["client"], score["task"]): score
            for score in json.loads(file.read_text())["scores"]
            if score["primary"]
        }
        for file in writer.RUNS.glob("st_mt_1/fedbabu/*/summary.json")
    ]
    depth, parts = (
        [run[key] for run in scores] for key in (("nyud-multi", "depth"), ("pascal-human_parts", "human_parts"))
    )
    assert all(one["value"] > one["trivial"] for one in depth) and round(max(one["value"] for one in depth)) == 40
    assert [one["value"] for one in parts] == pytest.approx([one["trivial"] for one in parts], rel=1e-3)
    assert "up to forty metres" in text and len(scores) == 5

    older = {_key(file): _values(file) for file in (ROOT / "results" / "nano-3").rglob("summary.json")}
    again = {_key(file): _values(file) for file in writer.RUNS.rglob("summary.json")}
    both = older.keys() & again.keys()
    assert f"the same scores in every digit, all {len(both)}." in text
    assert all(older[key] == again[key] for key in both)


def _key(file):
    summary = json.loads(file.read_text())
    return summary["scenario"], summary["algorithm"], summary["seed"]


def _values(file):
    return [score["value"] for score in json.loads(file.read_text())["scores"]]


def test_the_stored_pages_are_fresh(writer, monkeypatch):
    """All but the table of what is missing: which runs count as made depends on the code, and takes long to say."""
    empty = writer.Coverage("", "", 0, 0, 0, "", writer.Bill.of([]))
    monkeypatch.setattr(writer.Coverage, "of", lambda grid, runs: empty)
    covered = re.compile(r"^## What is there, and what is missing\n.*?(?=^## )", re.M | re.S)
    for name, text in writer.make_pages(writer.RUNS, writer.PROBES).items():
        stored = (writer.FOLDER / name).read_text(encoding="utf-8")
        assert covered.sub("", stored) == covered.sub("", text), (
            f"{name}: python docs/write_leaderboard.py makes it anew"
        )


def test_a_command_that_fails_stops_it(writer, tmp_path):
    with pytest.raises(RuntimeError, match="exit code 2"):
        writer.ask("leaderboard", tmp_path / "nowhere")
