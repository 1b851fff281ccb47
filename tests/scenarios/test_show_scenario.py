"""`fmtlbench show scenario`: the shares a run would deal, as a table, as JSON and as a figure."""

from __future__ import annotations

import json

import pytest

from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.data.open import open_split
from fmtlbench.data.views import client_data

SMALL = {"data.train_samples.nyud": 24, "data.test_samples.nyud": 4, "data.size.nyud": [32, 32]}
DRAWN = {**SMALL, "scenario.partition": {"kind": "dirichlet", "alpha": 0.2}}


@pytest.fixture
def show(capsys):
    def call(name, *argv, overrides=None):
        for key, value in (overrides or {}).items():
            argv = (*argv, "--set", f"{key}={json.dumps(value)}")
        code = main(["show", "scenario", name, *map(str, argv)])
        return code, *capsys.readouterr()

    return call


def parties(show, name, *argv, overrides=None):
    code, out, err = show(name, "--json", *argv, overrides=overrides)
    assert code == 0, err
    return json.loads(out)["parties"]


def column(out, name):
    rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    return [row[rows[0].index(name)] for row in rows[1:]]


def test_equal_and_linear_shares_are_counted(show):
    code, out, _ = show("niid5_ubsdst", "--preset", "fmtl-bench")
    assert code == 0
    assert column(out, "share") == ["1/10", "2/10", "3/10", "4/10"]
    assert column(out, "images") == ["80", "159", "238", "318"]
    assert column(out, "of which held out") == ["8", "16", "24", "32"]
    assert column(show("st_mt_1", "--preset", "paper")[1], "images") == ["1000", "1000", "1000", "999", "999", "795"]
    assert [p["images"] for p in parties(show, "niid7_ubcdst")] == [150, 150, 150, 150, 1500, 1500]


def test_parameters_are_shown_and_set(show):
    code, out, _ = show("iid1_sdmt", "--set", "scenario.clients=8")
    assert code == 0 and column(out, "images") == ["75"] * 8
    assert "scenario.clients=8 (default 4): number of clients; the paper has 2, 4, 6 and 8" in out
    record = json.loads(show("iid1_sdmt", "--json", "--set", "scenario.clients=2")[1])
    assert record["parameters"] == {"clients": 2} and record["partition"] == {"kind": "equal", "alpha": None}
    assert record["parties"][0]["tasks"] == ["semseg", "normals", "edge", "depth"]


@pytest.mark.parametrize(("name", "overrides"), [("niid3_sdht", SMALL), ("niid4_ubsdmt", SMALL), ("iid1_sdmt", DRAWN)])
def test_the_counts_are_those_of_a_run(show, cache, name, overrides):
    config = resolve("local", name, seed=3, overrides=overrides)
    data = client_data(config, {("nyud", s): open_split(config.data, "nyud", s) for s in ("train", "test")})
    shown = parties(show, name, "--seed", 3, overrides=overrides)
    assert [(p["images"] - p["held_out"], p["held_out"]) for p in shown] == [
        (len(d.train), len(d.tests["personal"])) for d in data
    ]


def test_a_scenario_is_shown_whatever_a_method_would_refuse(show):
    half = {"federation.participation": 0.5}  # in which local training has no meaning
    assert len(parties(show, "st_mt_1", overrides=half)) == 6
    code, _, err = show("st_mt_1", "--seed", -1)
    assert code == 2 and "--seed -1: expected a whole number" in err


def test_what_is_exchanged_is_shown_with_the_override_that_holds(show):
    assert "· exchange: decoders ·" in show("st_mt_1")[1] and "· exchange: models ·" in show("niid6_ubcdmt")[1]
    other = {"federation.exchange": "decoders"}
    assert "· exchange: decoders ·" in show("niid6_ubcdmt", overrides=other)[1]
    told = [json.loads(show("niid6_ubcdmt", "--json", overrides=o)[1])["exchange"] for o in ({}, other)]
    assert told == ["models", "decoders"]


def test_clients_that_take_no_part_are_shown_with_their_share(show):
    code, out, _ = show("st_mt_1_unseen")
    assert code == 0 and column(out, "client")[-1] == "newcomer" and column(out, "share")[0] == "1/6"
    assert column(out, "takes part") == ["yes"] * 6 + ["no"] and "judged on: global, unseen" in out
    assert "in 5 epochs (evaluation.unseen_epochs)" in out
    assert [p["unseen"] for p in parties(show, "st_mt_1_unseen")] == [False] * 6 + [True]
    assert "takes part" not in show("st_mt_1")[1]


def test_drawn_shares_need_a_seed(show, tmp_path):
    code, out, _ = show("iid1_sdmt", overrides=DRAWN)
    assert code == 0 and column(out, "share") == ["drawn by seed"] * 4 and column(out, "images") == ["–"] * 4
    assert "partition: dirichlet (alpha 0.2)" in out
    assert {p["images"] for p in parties(show, "iid1_sdmt", overrides=DRAWN)} == {None}
    code, out, err = show("iid1_sdmt", "-o", tmp_path / "x.png", overrides=DRAWN)
    assert code == 2 and out == "" and "add --seed N" in err and not list(tmp_path.iterdir())


def test_pools_and_people_are_explained(show):
    out = show("niid3_sdht")[1]
    assert "each pool deals all images" in out and column(out, "share")[0] == "1/4 of pool single"
    assert column(out, "images") == ["150"] * 8
    assert "show people" in show("st_mt_1", "--preset", "paper")[1]
    assert "show people" not in show("st_mt_1")[1] and "show people" not in show("st_nyud", "--preset", "paper")[1]


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["iid1_sdmt", "--set", "scenario.clients=301"], "301 nyud clients, but only 600 images to share, two each"),
        (["iid1_sdmt", "--set", "scenario.clint=3"], "did you mean 'clients'?"),
        (["iid1_sdmt", "--preset", "nao"], "did you mean 'nano'?"),
        (["iid1_smdt"], "did you mean 'iid1_sdmt'"),
        (["st_mt_1", "--seed", "-1"], "--seed -1"),
        (["st_mt_1", "-o", "figure.gif"], ".png"),
    ],
)
def test_mistakes_are_one_line(show, argv, part):
    code, out, err = show(*argv)
    assert (code, out) == (2, "") and part in err and err.count("\n") == 1


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_the_figure_is_written(show, tmp_path, ending):
    file = tmp_path / f"clients.{ending}"
    code, out, _ = show("niid6_ubcdmt", "--preset", "fmtl-bench", "-o", file)
    assert code == 0 and out.splitlines()[-1] == str(file)
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending]
    assert file.read_bytes().startswith(start) and file.stat().st_size > 2000
    assert [f.name for f in tmp_path.iterdir()] == [file.name]
    if ending == "svg":
        text = file.read_text()
        for word in ("niid6_ubcdmt", "PASCAL-Context", "NYUD-v2", "Parts", "Depth", ">4998<", ">198<", "client"):
            assert word in text


def figure_of(images, clients=1):
    from fmtlbench.reports.plots.distribution import distribution

    group = [{"dataset": "nyud", "tasks": ["depth", "edge"], "images": n} for n in images] * clients
    return distribution("mine", group, {"nyud": "NYUD-v2"}).axes[0]


def test_dot_area_is_the_number_of_images():
    axes = figure_of([25, 100])
    small, large = (
        line.get_markersize() for line in axes.lines if line.get_marker() == "o" and line.get_ydata()[0] == 0
    )
    assert large / small == pytest.approx(2)
    assert {text.get_text() for text in axes.texts} == {"25", "100", "NYUD-v2"}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Depth", "Edge"]


def test_numbers_give_way_where_there_are_too_many_clients():
    axes = figure_of([25, 100], clients=100)
    assert {text.get_text() for text in axes.texts} == {"NYUD-v2"} and "up to 100 images" in axes.get_title()
    assert len(axes.get_xticks()) <= 25
