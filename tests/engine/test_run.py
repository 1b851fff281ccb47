"""Whole runs through the public interface: what they leave, that they repeat, that they go on after any kill."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import time

import pytest
import torch
from interrupt import AtMessage, AtStep, always, die, unless

from fmtlbench.algorithms.fedhca2 import FedHCA2
from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.data import open as data_open
from fmtlbench.engine import checkpoint
from fmtlbench.engine import run as engine_run
from fmtlbench.engine.messages import Evaluate, Install, Train
from fmtlbench.runs.store import RunStore

DETERMINISTIC = ("metrics.jsonl", "sums.npz", "summary.json", "config.yaml")


def contents(result):
    return {name: (result.folder / name).read_bytes() for name in DETERMINISTIC}


def test_a_run_leaves_what_the_design_says(tiny_run):
    result = tiny_run()
    assert not result.reused
    assert result.folder.parts[-3:-1] == ("duo", "fedhca2")
    assert result.folder.name.startswith("nano-synth-s0-")
    names = {path.name for path in result.folder.iterdir()}
    assert names >= {*DETERMINISTIC, "manifest.json", "timing.jsonl", "cost.json", "networks"}
    rows = [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [1, 2, 3]
    assert ["scores" in row for row in rows] == [False, True, True]  # every second round, and the last
    columns = {(r["client"], r["split"], r["task"], r["metric"]) for r in result.scores}
    clients = (
        ("pascal-human_parts", "human_parts", "mIoU"),
        ("nyud-multi", "depth", "RMSE"),
        ("nyud-multi", "edge", "odsF"),
    )
    assert columns == {(c, split, t, m) for c, t, m in clients for split in ("global", "personal")}
    assert result.summary["scores"] == [
        {**record, **({"trivial": result.summary["scores"][i]["trivial"]} if record["primary"] else {})}
        for i, record in enumerate(rows[-1]["scores"])
    ]
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert manifest["sessions"][0]["versions"]["torch"] == torch.__version__.partition("+")[0]
    assert set(manifest["data"]) == {"pascal/train", "pascal/test", "nyud/train", "nyud/test"}
    assert not list(result.folder.rglob("*.pt")) and not list(result.folder.rglob("*.pkl"))


@pytest.mark.slow
def test_the_manifest_tells_the_order_of_summation(tiny_run, monkeypatch):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    result = tiny_run("local", rounds=1, **{"train.threads": 2})
    (session,) = json.loads((result.folder / "manifest.json").read_text())["sessions"]
    assert session["arithmetic"] == {
        "threads": 2, "cpu_capability": torch.backends.cpu.get_cpu_capability(), "ATEN_CPU_CAPABILITY": "default",
    }  # fmt: skip


def test_personal_images_are_held_out_of_training(tiny_run):
    result = tiny_run()
    # 16 and 12 images, a tenth held out: 2 and 1
    assert [c["samples"] for c in result.summary["clients"]] == [14, 11]


def test_bytes_follow_from_what_travels(tiny_run):
    counts = [c["parameters"] for c in tiny_run("local").summary["clients"]]
    travelling = sum(c["encoder"] + c["decoder"] for c in counts) * 4 * 3
    for algo, expected in (("local", 0), ("fedavg", travelling), ("fedhca2", travelling)):
        summary = tiny_run(algo).summary
        assert (summary["bytes_up"], summary["bytes_down"]) == (expected, expected)
    only_encoder = tiny_run("fedhca2", **{"algo.decoder": "none"}).summary
    assert only_encoder["bytes_up"] == sum(c["encoder"] for c in counts) * 4 * 3


def test_a_finished_run_is_shown_not_repeated(tiny_run):
    first = tiny_run()
    stamp = (first.folder / "summary.json").stat().st_mtime_ns
    again = tiny_run()
    assert again.reused and again.summary == first.summary
    assert (first.folder / "summary.json").stat().st_mtime_ns == stamp
    fresh = tiny_run(fresh=True)
    assert not fresh.reused and contents(fresh) == contents(first)


def test_same_seed_same_bytes_other_seed_other_numbers(tiny_run, tmp_path):
    one = tiny_run(out=tmp_path / "a")
    torch.manual_seed(12345)  # whatever the caller drew before must not matter
    torch.rand(7)
    two = tiny_run(out=tmp_path / "b")
    assert contents(one) == contents(two)
    other = tiny_run(seed=1)
    assert other.folder != one.folder
    assert [r["value"] for r in other.scores] != [r["value"] for r in one.scores]


def test_algorithms_differ(tiny_run):
    values = [[r["value"] for r in tiny_run(algo).scores] for algo in ("local", "fedavg", "fedhca2")]
    assert values[0] != values[1] != values[2] != values[0]


def test_training_lowers_the_loss(tiny_run):
    options = {"train.augment": [], "train.warmup_epochs": 0, "train.lr": 1e-2}
    rows = tiny_run("local", rounds=8, **options).folder / "metrics.jsonl"
    losses = [json.loads(line)["losses"]["nyud-multi"]["depth"] for line in rows.read_text().splitlines()]
    assert losses[-1] < 0.6 * losses[0]


# -- kill -9 ---------------------------------------------------------------------------------------------------------


def half_a_line(store, metrics, timing):
    with (store.folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(metrics)[:40])
    die()


# Listeners see the steps, seven a round, and executors the messages; for the rest a function's arguments tell when.
STEPS = {"first step": (1, 1), "middle of training": (2, 6), "last steps": (3, 6)}
MESSAGES = {"gathering": (Train, True), "scattering": (Install, False), "evaluating": (Evaluate, False)}
CALLS = {
    "opening the data": (data_open, "open_split", lambda config, *names: names[:2] == ("nyud", "train")),
    "aggregating": (FedHCA2, "aggregate", lambda method, rnd: rnd.index == 1),
    "appending a row": (RunStore, "append", lambda store, metrics, timing: metrics["round"] == 2, half_a_line),
    "before a checkpoint": (engine_run, "save_checkpoint", lambda folder, done, write: done == 2),
    "inside a checkpoint": (checkpoint, "save_file", lambda tensors, file: is_second(file, "client-000.safetensors")),
    "checkpoint index": (checkpoint, "write_json", lambda file, index: is_second(file, "index.json")),
    "removing old checkpoints": (checkpoint, "available", lambda folder: (folder / "round-00003").exists()),
    "summing up": (engine_run, "add_constants", always),
    "writing the summary": (RunStore, "write_summary", always),
}


def is_second(file, name):
    """Whether it is this file of the second round's checkpoint."""
    return "round-00002" in file.parent.name and file.name == name


@pytest.fixture(scope="module")
def whole(tiny_run_in, tmp_path_factory):
    """What a run leaves that nobody interrupts."""
    return contents(tiny_run_in(tmp_path_factory.mktemp("whole")))


@pytest.mark.parametrize("phase", [*STEPS, *MESSAGES, *CALLS])
def test_killed_and_resumed_equals_uninterrupted(tiny_run, whole, tmp_path, phase):
    def doomed():
        if phase in STEPS:
            given = {"progress": AtStep(*STEPS[phase], then=die)}
        elif phase in MESSAGES:
            kind, replied = MESSAGES[phase]
            given = {"executor": AtMessage(kind, 2, replied=replied)}
        else:
            (target, name, when, *then), given = CALLS[phase], {}
            setattr(target, name, unless(getattr(target, name), when, *then))
        tiny_run(out=tmp_path / "killed", **given)

    child = multiprocessing.get_context("fork").Process(target=doomed)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, "the kill did not happen in the phase it was meant for"
    resumed = tiny_run(out=tmp_path / "killed")
    assert not resumed.reused
    assert contents(resumed) == whole


@pytest.mark.slow
def test_killed_at_random_moments_again_and_again(tiny_run, tmp_path):
    whole = tiny_run(out=tmp_path / "whole", rounds=6)
    rng = random.Random(7)
    for _ in range(25):
        child = multiprocessing.get_context("fork").Process(
            target=tiny_run, kwargs={"out": tmp_path / "killed", "rounds": 6}
        )
        child.start()
        time.sleep(rng.uniform(0.05, 1.5))
        child.kill()
        child.join()
        if child.exitcode == 0:
            break
    assert contents(tiny_run(out=tmp_path / "killed", rounds=6)) == contents(whole)


def test_a_second_process_on_the_same_run_is_refused(tiny_run, tmp_path):
    def hold():
        tiny_run(progress=AtStep(1, then=lambda: time.sleep(60)))

    child = multiprocessing.get_context("fork").Process(target=hold)
    child.start()
    try:
        deadline = time.monotonic() + 30
        while not list((tmp_path / "runs").rglob("manifest.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(FmtlbenchError, match="another process is working on this run"):
            tiny_run()
    finally:
        child.kill()
        child.join()
