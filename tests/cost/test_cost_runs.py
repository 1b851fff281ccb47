"""Whole runs with faked sensors: what they leave, that they go on whatever the sensors do, that resuming adds up."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from fake_sensors import FakeTracker
from interrupt import AtStep, Stopped, die
from kit import TINY
from notes import Notes
from resuming import numbers_of

from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.cost import meter as meter_module
from fmtlbench.cost.compute import flops_of
from fmtlbench.data.views import ClientData, View
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation

PHASES = {"train", "upload", "aggregate", "download", "evaluate", "checkpoint", "other"}
BUSY = {"load", "step", "warmup", "evaluate", "other"}


@pytest.fixture
def sensors(monkeypatch):
    monkeypatch.setattr(meter_module, "Tracker", FakeTracker)


def read(result, name="cost.json"):
    text = (result.folder / name).read_text()
    return json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]


def test_what_a_run_leaves(tiny_run, shared_run, sensors):
    result = tiny_run(energy=True, country="FRA")
    cost, rows = read(result), read(result, "timing.jsonl")
    assert set(cost["seconds"]) == PHASES and cost["seconds_total"] == pytest.approx(sum(cost["seconds"].values()))
    assert set(cost["busy"]) == BUSY
    assert cost["setup_seconds"] > 0 and cost["repeated"] is None
    assert cost["spent"]["seconds"] == pytest.approx(cost["seconds_total"] + cost["setup_seconds"])
    energy = cost["energy"]
    assert energy["kwh"] == pytest.approx(4 * 0.00125)  # three rounds and the last checkpoint
    assert energy["co2e_g"] == pytest.approx(energy["kwh"] * 400)
    assert energy["source"] == "estimated" and energy["measured_share"] == pytest.approx(0.8)
    assert {part: entry["source"] for part, entry in energy["parts"].items()} == {"cpu": "measured", "ram": "estimated"}
    assert (energy["country"], energy["region"], energy["g_per_kwh"], energy["reason"]) == ("FRA", None, 400.0, None)
    assert [row["energy"]["kwh"] for row in rows] == pytest.approx([0.00125, 0.0025, 0.00375])
    assert (cost["bytes_up"], cost["bytes_down"]) == (result.summary["bytes_up"], result.summary["bytes_down"])
    assert cost["parameters"] == {c["id"]: c["parameters"] for c in result.summary["clients"]}
    assert cost["memory"]["process"] > 10**7 and cost["memory"]["device"] is None
    for client_id, flops in cost["flops"].items():
        assert 2 * flops["forward"] < flops["train"] < 3.5 * flops["forward"], client_id
    assert numbers_of(result) == numbers_of(shared_run())  # measuring moves no number, nor the place the hash


def test_time_is_booked_to_clients_and_the_first_batch_apart(shared_run):
    rows = read(shared_run(), "timing.jsonl")
    ids = {"pascal-human_parts", "nyud-multi"}
    for row in rows:
        assert set(row["clients"]) == ids and row["session"] == rows[0]["session"]
        for phase in ("load", "step"):
            assert row["busy"][phase] == pytest.approx(sum(row["clients"][c][phase] for c in ids))
        assert ("warmup" in row["busy"]) == (row["round"] == 1)
        # One after the other in one process: clients work within the time that the server waits for them.
        assert all(sum(row["clients"][c].values()) <= row["wall"][c] for c in ids)
        assert sum(row["wall"].values()) <= sum(row["seconds"].values()) and "processes" not in row
        assert all(("evaluate" in row["clients"][c]) == (row["round"] > 1) for c in ids)
        assert all(seconds >= 0 for seconds in row["seconds"].values())
    assert "checkpoint" not in rows[0]["seconds"] and rows[1]["seconds"]["checkpoint"] > 0


def test_fine_tuning_before_scoring_is_evaluation(tiny_run):
    rows = read(tiny_run("fedbabu", rounds=2), "timing.jsonl")
    last, before = rows[-1]["clients"]["nyud-multi"], rows[0]["clients"]["nyud-multi"]
    assert last["evaluate"] > 0 and set(before) == {"load", "step", "warmup", "other"}


def test_tc_counts_its_steps_one_by_one_and_joint(scenario_file):
    options = {
        "model.architecture": "tc",
        "model.backbone": "swin_nano",
        "model.pretrained": False,
        "model.options.task_steps": "sequential",
        "data.size": {"pascal": [32, 64], "nyud": [32, 64]},
    }
    config = resolve("local", scenario_file, overrides=options)
    data = [ClientData(View(None, np.arange(8)), {}) for _ in config.scenario.parties()]
    federation = Federation(ClientFactory(config, "meta", None, data))
    flops = {client.party.id: flops_of(client) for client in federation.executor.clients}
    both, alone = flops["nyud-multi"], flops["pascal-human_parts"]
    assert both["train"] == both["sequential"] > 1.1 * both["joint"] > 2 * both["forward"]
    assert "sequential" not in alone and alone["train"] > 2 * alone["forward"]


def test_sensors_that_fail_in_the_middle_are_one_warning_and_a_reason(tiny_run, monkeypatch):
    monkeypatch.setattr(meter_module, "Tracker", type("Dying", (FakeTracker,), {"dies_at": 3}))
    notes = Notes()
    result = tiny_run(energy=True, progress=notes)
    energy = read(result)["energy"]
    assert energy["kwh"] == pytest.approx(0.00125)
    assert energy["reason"] == "not measured in rounds 2–3: OSError: the sensor is gone"
    assert len(notes.told) == 1 and "the sensor is gone" in notes.told[0]


def test_no_permission_at_all(tiny_run, monkeypatch):
    def forbidden(*_):
        raise PermissionError(13, "Permission denied", "/sys/class/powercap")

    monkeypatch.setattr(meter_module, "Tracker", forbidden)
    notes = Notes()
    cost = read(tiny_run(energy=True, progress=notes, rounds=1))
    assert cost["energy"]["kwh"] is None and cost["spent"]["kwh"] is None
    assert "Permission denied" in cost["energy"]["reason"] and len(notes.told) == 1


def test_off_means_off(tiny_run, monkeypatch):
    monkeypatch.setattr(meter_module, "EnergyMeter", None)  # calling it would fail
    energy = read(tiny_run(energy=False, rounds=1))["energy"]
    assert energy["kwh"] is None and energy["reason"] == "turned off (--no-energy)"


def test_codecarbon_is_imported_by_a_started_tracker_only():
    code = "import sys, fmtlbench.api, fmtlbench.cost.meter; print('codecarbon' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_two_runs_at_once_each_have_their_bill(tiny_run, sensors):
    results = {}
    threads = [
        threading.Thread(target=lambda s=seed: results.update({s: tiny_run("local", seed=s, rounds=1, energy=True)}))
        for seed in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [read(results[seed])["energy"]["kwh"] for seed in (0, 1)] == pytest.approx([0.0025, 0.0025])


# -- resuming --------------------------------------------------------------------------------------------------------


KILLED = {"energy": True, "rounds": 4, "checkpoint_every": 2}


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory, scenario_file):
    """The folder of a run that was killed twice."""
    import fmtlbench

    out = tmp_path_factory.mktemp("killed")

    def doomed():
        asked = {"out": out, "device": "cpu", **TINY, **KILLED}
        fmtlbench.run("fedhca2", scenario_file, progress=AtStep(4, then=die), **asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meter_module, "Tracker", FakeTracker)
        for _ in range(2):
            child = multiprocessing.get_context("fork").Process(target=doomed)
            child.start()
            child.join()
            assert child.exitcode == -signal.SIGKILL
    return out


@pytest.fixture
def killed(killed_once, sensors, tmp_path):
    """A run with a checkpoint every other round, killed twice in its fourth: the third is made again each time."""
    shutil.copytree(killed_once, tmp_path / "killed")
    return {**KILLED, "out": tmp_path / "killed"}


def test_resuming_adds_up_and_shows_what_was_made_again(tiny_run, killed, tmp_path):
    result = tiny_run(**killed)
    cost, rows, again = read(result), read(result, "timing.jsonl"), read(result, "repeated.jsonl")
    assert [row["round"] for row in rows] == [1, 2, 3, 4] and [row["round"] for row in again] == [3, 3]
    assert len({row["session"] for row in [*rows, *again]}) == 3
    assert [row["energy"]["kwh"] for row in rows] == pytest.approx([0.00125 * n for n in (1, 2, 3, 4)])
    assert cost["energy"]["kwh"] == pytest.approx(0.00125 * 5)
    assert cost["repeated"]["rounds"] == 2 and cost["repeated"]["kwh"] == pytest.approx(0.0025)
    assert cost["repeated"]["bytes_up"] == 2 * result.summary["bytes_up"] // 4
    assert cost["spent"]["kwh"] == pytest.approx(0.00125 * 7)
    seconds = cost["seconds_total"] + cost["setup_seconds"] + cost["repeated"]["seconds"]
    assert cost["spent"]["seconds"] == pytest.approx(seconds) and cost["repeated"]["seconds"] > 0
    assert numbers_of(result) == numbers_of(tiny_run(**{**killed, "out": tmp_path / "whole"}))


def test_setting_aside_twice_counts_once(tiny_run, killed, monkeypatch):
    """Killed again between keeping the rows and trimming the files."""
    from fmtlbench.runs import store

    def no_trimming(path, text):
        if path.name != "repeated.jsonl":
            raise KeyboardInterrupt
        original(path, text)

    original = store.write_text
    monkeypatch.setattr(store, "write_text", no_trimming)
    with pytest.raises(KeyboardInterrupt):
        tiny_run(**killed)
    monkeypatch.setattr(store, "write_text", original)
    assert read(tiny_run(**killed))["repeated"]["rounds"] == 2


def test_a_round_that_fails_has_cost_something(tiny_run, sensors):
    options = {"energy": True, "checkpoint_every": 1}
    with pytest.raises(Stopped):
        tiny_run(progress=AtStep(2, 4), **options)
    result = tiny_run(**options)
    (row,) = read(result, "repeated.jsonl")
    assert row["round"] == 2 and row["unfinished"] and row["seconds"]["other"] > 0
    assert read(result)["repeated"]["kwh"] == pytest.approx(0.00125)


def test_starting_over_forgets(tiny_run, killed):
    assert read(tiny_run(**killed, fresh=True))["repeated"] is None


def test_damaged_records_of_repeated_rounds_stop_nobody(tiny_run, killed):
    path = next(killed["out"].rglob("repeated.jsonl"))
    path.write_text("{nonsense\n")
    assert read(tiny_run(**killed))["repeated"]["rounds"] == 1


# -- the bill --------------------------------------------------------------------------------------------------------


def test_the_command_line_prints_the_bill(tmp_path, scenario_file, tiny_flags, capsys, sensors, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_ENERGY", "on")
    flags = ["run", "--algo", "fedavg", "--scenario", scenario_file, "--rounds", "2", "--country", "fra", *tiny_flags]
    assert main([*flags, "--out", str(tmp_path), "--format", "table"]) == 0
    out = capsys.readouterr().out
    assert "time    " in out and "step " in out and "traffic " in out
    assert "energy  3.75 Wh, 1.5 g CO₂e at 400 g/kWh (FRA)" in out
    assert "cpu measured: RAPL (whole processor); ram estimated: a model" in out
    assert main([*flags, "--out", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"]["energy"]["kwh"] == pytest.approx(0.00375)


def test_an_unknown_country_is_wrong_usage(tmp_path, scenario_file, capsys):
    flags = ["run", "--algo", "local", "--scenario", scenario_file, "--out", str(tmp_path / "runs")]
    assert main([*flags, "--country", "FRX"]) == 2
    assert "--country FRX" in capsys.readouterr().err and not (tmp_path / "runs").exists()
