"""What a request means: names, seeds, times, grid files and flags above them; and errors that point."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UsageError
from fmtlbench.bench.asked_runs import parse_seeds
from fmtlbench.bench.grid import Flags, read_grid, split
from fmtlbench.bench.plan import make_plan
from fmtlbench.config.request import RunRequest
from fmtlbench.scenarios import probe_names, scenario_files

ROOT = Path(__file__).parents[2]
GRID = """\
algos: [fedavg, fedhca2]
scenarios: st_mt_1
seeds: 0-2
set: {train.lr: 1e-3}
variants:
  - {name: fedavg-encoder, algo: fedavg, set: {algo.shared: encoder}}
  - {algo: fedhca2, set: {algo.c: 0.2, train.lr: 2e-3}}
"""


@pytest.fixture
def grid_file(tmp_path):
    def write(text):
        path = tmp_path / "grid.yml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0-4,7", (0, 1, 2, 3, 4, 7)), ("3", (3,)), ("2,0-2", (2, 0, 1)), (" 1 , 2 - 3 ", (1, 2, 3)), ("5-5", (5,))],
)
def test_seeds(text, seeds):
    assert parse_seeds(text, "--seeds") == seeds


@pytest.mark.parametrize("text", ["", "a", "1,,2", "-1", "4-", "1.5", "4-0", "0-99999999999", "²"])
def test_bad_seeds_are_named(text):
    with pytest.raises(UsageError, match=r"^--seeds: "):
        parse_seeds(text, "--seeds")


def test_words_are_split_outside_brackets():
    assert split("a, b[x=1,y=[2,3]],c") == ["a", "b[x=1,y=[2,3]]", "c"]


def test_all_means_every_registered_one():
    grid = read_grid(None, Flags("all", "all", "0"))
    assert [variant.label for variant in grid.methods] == list(ALGORITHMS)
    assert set(grid.scenarios) == set(scenario_files()) - set(probe_names()) and grid.presets == ("nano",)


def test_options_in_brackets_make_a_variant():
    grid = read_grid(None, Flags("fedhca2,fedhca2[algo.c=0.2,data.size.nyud=[32,64]]", "st_mt_1"))
    assert [v.label for v in grid.methods] == ["fedhca2", "fedhca2[algo.c=0.2,data.size.nyud=[32, 64]]"]
    assert grid.methods[1].overrides == {"algo.c": 0.2, "data.size.nyud": [32, 64]} and grid.seeds == (0,)


def test_a_file_with_variants(grid_file):
    grid = read_grid(grid_file(GRID), Flags())
    assert [v.label for v in grid.methods] == [
        "fedavg", "fedhca2", "fedavg-encoder", "fedhca2[algo.c=0.2,train.lr=0.002]"
    ]  # fmt: skip
    assert grid.seeds == (0, 1, 2) and grid.scenarios == ("st_mt_1",)
    assert grid.methods[0].overrides == {"train.lr": 1e-3}
    assert grid.methods[3].overrides == {"train.lr": 2e-3, "algo.c": 0.2}


def test_the_guides_grid_is_one(bench, grid_file):
    (text,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "bench.md").read_text(), re.M | re.S)
    grid = read_grid(grid_file(text), Flags())
    assert [v.label for v in grid.methods] == ["fedavg", "fedprox", "fedhca2", "fedavg-encoder", "fedhca2-careful"]
    assert len(make_plan(grid.asked(), RunRequest("", "", out=bench.out), "cpu").runs) == 6 * 2 * 5


def test_flags_take_the_place_of_the_files_entries(grid_file):
    flags = Flags("fedavg-encoder,local", "st_mt_2", "7", "paper", 3, {"train.lr": 5e-3})
    grid = read_grid(grid_file(GRID), flags)
    assert [v.label for v in grid.methods] == ["fedavg-encoder", "local"]
    assert (grid.scenarios, grid.seeds, grid.presets) == (("st_mt_2",), (7,), ("paper",))
    expected = {"train.lr": 5e-3, "algo.shared": "encoder", "federation.rounds": 3}
    assert grid.methods[0].overrides == expected


def test_files_that_a_grid_names_lie_beside_it(tmp_path, scenario_file, monkeypatch):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "own.yml").write_text(Path(scenario_file).read_text())
    (folder / "grid.yml").write_text("algos: local\nscenarios: [own.yml]\nseeds: [0, 2-3]\n")
    monkeypatch.chdir(tmp_path)
    grid = read_grid("study/grid.yml", Flags())
    assert grid.scenarios == ("study/own.yml",) and grid.seeds == (0, 2, 3)


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ("algos: fedavg\nscenarioss: st_mt_1\n", 2, ["scenarioss: unknown key", "'scenarios'"]),
        ("algos:\n  - fedavg\n  - fedagv\nscenarios: all\n", 3, ["algos: no algorithm 'fedagv'", "'fedavg'"]),
        ("algos: fedavg\nscenarios: [st_mt_1,\n  st_mt_11]\n", 3, ["scenarios: no scenario 'st_mt_11'", "'st_mt_1'"]),
        ("algos: fedavg\nscenarios: all\npreset: nanoo\n", 3, ["preset: no preset 'nanoo'", "'nano'"]),
        ("algos: fedavg\nscenarios: all\npreset: nano\npresets: [paper]\n", 4, ["presets", "preset is given too"]),
        ("algos: fedavg\nscenarios: all\nseeds: 4-1\n", 3, ["seeds", "backwards"]),
        ("algos: fedavg\nscenarios: all\nseeds: {a: 1}\n", 3, ["seeds: expected numbers"]),
        ("algos: {a: 1}\nscenarios: all\n", 1, ["algos: expected a name or a list of names"]),
        ("algos: [1]\nscenarios: all\n", 1, ["algos: expected a name, got 1"]),
        ("scenarios: all\nvariants:\n  - {name: x}\n", 3, ["variants.0", "missing key 'algo'"]),
        ("scenarios: all\nvariants:\n  - {algo: fedprx}\n", 3, ["variants.0.algo: no algorithm 'fedprx'", "'fedprox'"]),
        ("scenarios: all\nvariants:\n  - {algo: fedavg, sets: {}}\n", 3, ["variants.0.sets: unknown key", "'set'"]),
        ("scenarios: all\nvariants:\n  - {algo: fedavg}\n  - {algo: fedavg}\n", 4, ["a second variant"]),
        ("scenarios: all\nvariants:\n  - {algo: fedavg, name: local}\n", 3, ["'local' is the name of a method"]),
        ("algos: fedavg\nscenarios: all\nrounds: 0\n", 3, ["rounds: expected at least 1"]),
        ("algos: fedavg\nscenarios: all\nrounds: 2\nset: {federation.rounds: 3}\n", 3, ["is set too"]),
        ("algos: fedavg\nscenarios: all\nset: 5\n", 3, ["set: expected a mapping"]),
        ("algos: [fedavg\n", 2, ["not valid YAML"]),
    ],
)  # fmt: skip
def test_mistakes_in_a_file_are_named_with_line_and_field(grid_file, text, line, parts):
    path = grid_file(text)
    with pytest.raises(UsageError) as caught:
        read_grid(path, Flags())
    assert str(caught.value).startswith(f"{path}:{line}: ") and "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (Flags(None, "all"), "which algorithms"),
        (Flags("fedavg", None), "which scenarios"),
        (Flags("fedagv", "all"), "--algos: no algorithm 'fedagv'; did you mean 'fedavg'"),
        (Flags("fedavg", "st_mt_11"), "--scenarios: no scenario 'st_mt_11'; did you mean 'st_mt_1'"),
        (Flags("fedavg", "all", preset="papr"), "--preset: no preset 'papr'; did you mean 'paper'"),
        (Flags("fedhca2[algo.c=0.2", "all"), "the bracket is not closed"),
        (Flags("fedhca2[algo.c]", "all"), "expected key=value"),
        (Flags("fedhca2[algo.c=1]", "all", overrides={"algo.c": 2}), "--set algo.c is given too"),
        (Flags("fedavg", "all", rounds=0), "--rounds 0: expected"),
        (Flags("fedavg", "all", rounds=1, overrides={"federation.rounds": 2}), "--rounds 1: federation.rounds is set"),
        (Flags("./nowhere.py", "all"), "--algos: no such file"),
        (Flags("fedavg", "./nowhere.yml"), "--scenarios: no such file: ./nowhere.yml"),
    ],
)
def test_mistakes_on_the_command_line_are_named(flags, message):
    with pytest.raises(UsageError) as caught:
        read_grid(None, flags)
    assert message in str(caught.value)
