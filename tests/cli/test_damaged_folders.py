"""Verbs that go on with, look at or ask one run × damage: one line that names the file and says what to do."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from interrupt import AtStep, Stopped
from kit import DUO, TINY

import fmtlbench
from fmtlbench.cli import main

RECORDS = ("summary.json", "manifest.json", "metrics.jsonl", "timing.jsonl", "config.yaml")


def retype(file):
    """Put something of another type where a word, a number or a list belongs."""
    if file.name == "config.yaml":
        file.write_text(file.read_text().replace("seed: 0", "seed: [0]"))
        return
    first, *rest = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    record = {**json.loads(first), "round": "one", "seed": [0], "sessions": 3}
    file.write_text("\n".join([json.dumps(record), *rest]) + "\n")


def pipe(file):
    file.unlink()
    os.mkfifo(file)


DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:40] + b"\n"),
    "another shape": lambda file: file.write_text("[1, 2]\n"),
    "other types": retype,
    "pipe": pipe,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a finished run and one that was stopped in its third round."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "duo.yml").write_text(DUO)
    given = {"out": folder / "runs", "device": "cpu", **TINY}
    fmtlbench.run("local", folder / "duo.yml", rounds=1, **given)
    with pytest.raises(Stopped):
        fmtlbench.run("fedavg", folder / "duo.yml", rounds=3, progress=AtStep(3), **given)
    return folder


@pytest.fixture
def root(made, tmp_path, monkeypatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys):
    """(exit code, stdout, lines of stderr that are no events)."""

    def command(*argv):
        capsys.readouterr()
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return code, out, [line for line in err.splitlines() if not line.startswith("{")]

    return command


def folder_of(root: Path, algo: str) -> Path:
    (folder,) = (root / "runs/duo" / algo).iterdir()
    return folder.relative_to(root)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_run_is_not_gone_on_with_and_the_plan_says_so(root, call, tiny_flags, name, damage):
    run = folder_of(root, "fedavg")
    if name == "summary.json":  # as a stopped run has none
        shutil.copy(folder_of(root, "local") / name, run / name)
    DAMAGES[damage](run / name)
    before = contents(run)
    asked = ("--rounds", "3", *tiny_flags, "--device", "cpu")
    code, _, lines = call("run", "--algo", "fedavg", "--scenario", "duo.yml", *asked)
    assert code == 1 and len(lines) == 1, lines
    assert str(run / name) in lines[0] and lines[0].endswith("; --fresh starts the run over")
    assert contents(run) == before

    plan = ("bench", "--algos", "fedavg", "--scenarios", "duo.yml", "--no-local", "--dry-run", *asked)
    code, out, lines = call(*plan)
    assert code == 0 and not lines
    if name.endswith(".jsonl") and damage == "empty":
        return  # that rows are missing is seen when the checkpoint is loaded
    assert "1 damaged" in out and f"damaged: {run / name}" in out and "--fresh starts the run over" in out
    (planned,) = json.loads(call(*plan, "--format", "json")[1])["runs"]
    assert planned["state"] == "damaged" and str(run / name) in planned["problem"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", RECORDS)
def test_what_looks_at_a_damaged_run_names_the_file(root, call, name, damage):
    run, other = folder_of(root, "local"), folder_of(root, "fedavg")
    DAMAGES[damage](run / name)
    code, out, lines = call("runs")
    assert code == 0 and not lines and ("damaged" in out) == (name == "summary.json")
    code, out, lines = call("runs", "show", run)
    assert code == 0 and not lines
    assert name not in ("summary.json", "manifest.json") or f"damaged: {name}" in out
    assert name != "config.yaml" or ("departures from the preset not known: " in out and name in out)
    json.loads(call("runs", "show", run, "--json")[1])
    for argv in (
        ("runs", "diff", run, other),
        ("runs", "diff", other, run, "--format", "json"),
        ("predict", run, "--limit", "1", "--device", "cpu", "-o", "out"),
        ("export", "--weights", run, "-o", "card"),
    ):
        code, _, lines = call(*argv)
        reads = ("config.yaml", "summary.json", *(() if argv[0] == "export" else ("manifest.json",)))
        if name not in reads or (damage, name, argv[1]) == ("other types", "config.yaml", "diff"):
            assert code == 0, lines  # what it does not need, or shows as it is
            continue
        assert code in (1, 2) and len(lines) == 1, (argv, lines)
        assert str(run / name) in lines[0]
        assert code == 2 or lines[0].endswith("make the run again (fmtlbench run --fresh)"), lines
    assert not Path("out").exists() or name not in reads


def test_a_run_whose_config_is_another_one_s_is_not_gone_on_with(root, call, tiny_flags):
    run = folder_of(root, "fedavg")
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace("seed: 0", "seed: 7"))
    code, _, lines = call(
        "run", "--algo", "fedavg", "--scenario", "duo.yml", "--rounds", "3", *tiny_flags, "--device", "cpu"
    )
    assert code == 1 and "config.yaml is another run's" in lines[-1] and "--fresh" in lines[-1]
