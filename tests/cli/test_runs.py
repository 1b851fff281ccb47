"""`fmtlbench runs` as a user meets it: list, show, diff, rm."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from kit import DUO, TINY

import fmtlbench
from fmtlbench.cli import main
from fmtlbench.runs.find import find_run
from fmtlbench.runs.folder import RunFolder
from fmtlbench.runs.inventory import describe_run, list_runs
from fmtlbench.runs.lock import locked

FIRST = Path(__file__).parents[1] / "runs" / "first_format"
RESULTS = Path(__file__).parents[2] / "results" / "nano-1"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with two runs."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "duo.yml").write_text(DUO)
    given = {"rounds": 1, "out": folder / "runs", "device": "cpu", **TINY}
    fmtlbench.run("local", folder / "duo.yml", **given)
    fmtlbench.run("fedavg", folder / "duo.yml", seed=3, **given)
    return folder


@pytest.fixture
def root(made, tmp_path, monkeypatch) -> Path:
    """A copy of it, in which the commands are given."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def runs(capsys):
    """(exit code, stdout, stderr) of `fmtlbench runs`."""

    def call(*argv):
        capsys.readouterr()
        try:
            code = main(["runs", *map(str, argv)])
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return call


def table(out: str) -> list[dict[str, str]]:
    head, *rows = (line.split("\t") for line in out.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def folder_of(root: Path, algo: str) -> Path:
    (folder,) = (root / "runs" / "duo" / algo).iterdir()
    return folder


# -- list --------------------------------------------------------------------------------------------------------------


def test_a_line_per_run(runs, root):
    code, out, _ = runs()
    assert code == 0 and out == runs("list")[1] == runs("runs")[1]
    first, second = table(out)
    assert (first["method"], first["scenario"], first["preset"], first["seed"]) == ("fedavg", "duo", "nano", "3")
    assert (second["method"], second["state"], second["kept"]) == ("local", "finished", "last")
    assert int(first["bytes"]) > 1_000_000 and float(first["seconds"]) > 0
    assert first["name"].startswith("duo/fedavg/nano-synth-s3-")


def test_lists_are_filtered_and_sorted(runs, root):
    assert [row["method"] for row in table(runs("--algo", "local")[1])] == ["local"]
    assert [row["method"] for row in table(runs("list", "runs", "--seed", 3)[1])] == ["fedavg"]
    by_size = [int(row["bytes"]) for row in table(runs("--sort", "size")[1])]
    assert by_size == sorted(by_size, reverse=True)
    by_age = [row["changed"] for row in table(runs("--sort", "age")[1])]
    assert by_age == sorted(by_age, reverse=True)
    code, _, err = runs("--algo", "fedavgg")
    assert code == 2 and "did you mean 'fedavg'" in err
    records = json.loads(runs("--format", "json", "--scenario", "duo")[1])
    assert [record["algorithm"] for record in records] == ["fedavg", "local"] and records[0]["rounds"] == 1


def test_a_list_of_no_run_has_the_same_header(runs, root):
    code, out, err = runs("--state", "unfinished")
    assert code == 0 and out.splitlines() == runs()[1].splitlines()[:1] and not err
    assert json.loads(runs("--state", "unfinished", "--format", "json")[1]) == []


def test_unfinished_and_damaged_runs_are_told(runs, root):
    (folder_of(root, "local") / "summary.json").unlink()
    (folder_of(root, "fedavg") / "summary.json").write_text("{")
    damaged, unfinished = table(runs()[1])
    assert damaged["state"] == "damaged" and damaged["kept"].startswith("summary.json cannot be read")
    assert unfinished["state"] == "round 0/1" and unfinished["method"] == "local"
    assert [row["state"] for row in table(runs("--state", "damaged")[1])] == ["damaged"]
    (folder_of(root, "local") / "config.yaml").write_text("seed: 1\n")
    assert "lacks the method" in table(runs("--state", "damaged", "--sort", "method")[1])[1]["kept"]
    (folder_of(root, "local") / "config.yaml").write_text("a: [")
    assert [row["state"] for row in table(runs()[1])] == ["damaged", "damaged"]


def test_empty_folders_and_missing_ones_are_one_line(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = runs()
    assert code == 2 and "runs: no such folder" in err
    (tmp_path / "runs").mkdir()
    code, _, err = runs()
    assert code == 2 and "no run in it" in err and len(err.splitlines()) == 1


def test_older_runs_without_networks_are_listed():
    (first,) = list_runs([FIRST])
    assert (first.algorithm, first.state, first.kept, first.done) == ("fedavg", "finished", "none", 2)
    assert len(list_runs([RESULTS])) == len(list(RESULTS.glob("*/*/*/summary.json")))


def test_links_are_not_followed(runs, root, tmp_path):
    outside = tmp_path / "outside"
    shutil.move(folder_of(root, "local"), outside)
    (root / "runs" / "duo" / "local" / "link").symlink_to(outside)
    (folder_of(root, "fedavg") / "data").symlink_to(outside)
    rows = table(runs()[1])
    assert [row["method"] for row in rows] == ["fedavg"]
    assert int(rows[0]["bytes"]) < describe_run(outside, "x").bytes + 100_000


# -- one run -----------------------------------------------------------------------------------------------------------


def test_show_tells_scores_cost_sessions_and_what_is_kept(runs, root):
    code, out, _ = runs("show", folder_of(root, "fedavg"))
    assert code == 0
    for words in (
        "fedavg on duo · preset nano · seed 3 · finished",
        "networks kept: last",
        "RMSE",
        "by the clock",
        "session 1:",
        "torch",
    ):
        assert words in out
    record = json.loads(runs("show", "duo/fedavg", "--json")[1])
    assert record["seed"] == 3 and record["scores"] and record["cost"]["seconds_total"] > 0


def test_show_tells_departures_from_the_preset(runs):
    path = next(RESULTS.glob("st_mt_1/fedhca2/*"))
    out = runs("show", path, "--json")[1]
    departures = json.loads(out)["departures"]
    config = RunFolder(path).config()
    assert departures["train.lr"][1] == config["train"]["lr"] and departures["federation.rounds"][1]
    assert not any(name.startswith("algo.") for name in departures)
    assert "departures from preset nano" in runs("show", path)[1]


def test_show_tells_the_recorded_departures_where_preset_or_scenario_is_a_file(runs, root):
    departures = json.loads(runs("show", "duo/fedavg", "--json")[1])["departures"]
    recorded = RunFolder(folder_of(root, "fedavg")).config()["departures"]
    assert recorded["federation.rounds"] == 1
    assert departures == {path: ["not recorded", value] for path, value in recorded.items()}
    out = runs("show", "duo/fedavg")[1]
    assert "federation.rounds\tnot recorded\t1" in out and "not known" not in out


def test_show_of_a_damaged_run_says_what_is_wrong(runs, root):
    folder = folder_of(root, "fedavg")
    (folder / "summary.json").write_text("{}")
    code, out, _ = runs("show", folder)
    assert code == 0 and "damaged: summary.json: lacks" in out


def test_a_run_is_found_by_a_unique_part_of_its_name(root):
    fedavg = folder_of(root, "fedavg")
    assert find_run(fedavg.name[-8:]).resolve() == find_run("duo/fedavg").resolve() == find_run(str(fedavg)).resolve()
    for text, said in (
        ("duo", "2 runs have that in their name"),
        ("fedavh", r"no run 'fedavh'"),
        (str(root / "runs"), "no run in it; runs below it"),
        ("", "no run in it"),
        ("run", "no run 'run'"),  # the folder of all runs is no part of a run's name
        ("d", "no run 'd'"),
    ):
        with pytest.raises(fmtlbench.UsageError, match=said):
            find_run(text)


def test_the_whole_name_goes_before_a_longer_one(root):
    fedavg = folder_of(root, "fedavg")
    shutil.copytree(fedavg, fedavg.with_name(f"{fedavg.name}-abcdef"))
    assert find_run(f"runs/duo/fedavg/{fedavg.name}").name == fedavg.name
    assert find_run(f"duo/fedavg/{fedavg.name}").name == find_run(fedavg.name[-8:]).name == fedavg.name
    assert find_run("abcdef").name == f"{fedavg.name}-abcdef"


def test_rm_takes_no_mere_part_of_a_name(runs, root):
    local = folder_of(root, "local")
    shutil.rmtree(folder_of(root, "fedavg"))
    for part in ("run", "runs", "loca", local.name[-7:], "ocal/tiny"):
        assert runs("rm", "--yes", part)[0] == 2 and local.is_dir(), part


def test_the_end_of_input_is_a_no(runs, root, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert runs("rm", "duo/local")[0] == 1 and folder_of(root, "local").is_dir()


# -- two runs ----------------------------------------------------------------------------------------------------------


def test_diff_tells_what_differs_and_scores_side_by_side(runs, root):
    code, out, _ = runs("diff", "duo/local", "duo/fedavg", "--format", "json")
    found = json.loads(out)
    assert code == 0 and found["config"]["seed"] == [0, 3] and found["config"]["algorithm.name"] == ["local", "fedavg"]
    assert found["circumstances"] == {}
    (depth,) = [s for s in found["scores"] if (s["task"], s["split"]) == ("depth", "global")]
    assert depth["difference"] == pytest.approx(depth["second"] - depth["first"]) and not depth["higher_is_better"]
    text = runs("diff", "duo/local", "duo/fedavg")[1]
    assert "code, versions, data, hardware: no difference" in text and "seed\t0\t3" in text


def test_diff_tells_other_code_versions_data_and_hardware(runs, root):
    file = folder_of(root, "fedavg") / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["sessions"][-1]["versions"]["torch"] = "1.0"
    manifest["sessions"][-1]["hardware"]["processor"] = "Abacus"
    manifest["data"]["nyud/test"] = "0" * 64
    file.write_text(json.dumps(manifest))
    found = json.loads(runs("diff", "duo/local", "duo/fedavg", "--format", "json")[1])["circumstances"]
    assert set(found) == {"versions.torch", "hardware.processor", "data.nyud/test"}
    same = json.loads(runs("diff", "duo/local", "duo/local", "--format", "json")[1])
    assert same["config"] == same["circumstances"] == {} and all(s["difference"] == 0 for s in same["scores"])


# -- removing ----------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_rm_asks_on_a_terminal_and_refuses_elsewhere(runs, root, monkeypatch):
    folder = folder_of(root, "local")
    code, _, err = runs("rm", "duo/local")
    assert code == 2 and "--yes removes 1 run" in err and folder.is_dir()
    for no in ("no\n", "\n"):
        monkeypatch.setattr(sys, "stdin", Terminal(no))
        assert runs("rm", "duo/local")[0] == 1 and folder.is_dir()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert runs("rm", "duo/local")[0] == 0
    assert not folder.exists() and list(folder.parent.iterdir()) == []
    assert folder_of(root, "fedavg").is_dir()


def test_rm_removes_only_runs_and_all_or_none(runs, root, tmp_path):
    local, fedavg = folder_of(root, "local"), folder_of(root, "fedavg")
    (root / "notes").mkdir()
    (root / "notes" / "config.yaml").write_text("mine")
    for wrong, said in (
        (root / "notes", "no run in it"),
        (root / "runs", "no run in it"),
        ("nobody", "no run 'nobody'"),
    ):
        code, _, err = runs("rm", "--yes", local, wrong)
        assert code == 2 and said in err and local.is_dir()
    with locked(fedavg):
        code, _, err = runs("rm", "--yes", local, fedavg)
    assert code == 1 and "another process is working on this run" in err
    assert local.is_dir() and fedavg.is_dir()


def test_rm_follows_no_links(runs, root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("!")
    local, link = folder_of(root, "local"), root / "link"
    link.symlink_to(local)
    code, _, err = runs("rm", "--yes", link)
    assert code == 2 and "links are not followed" in err and local.is_dir()
    (local / "elsewhere").symlink_to(outside)
    assert runs("rm", "--yes", local)[0] == 0
    assert not local.exists() and (outside / "precious").read_text() == "!"
