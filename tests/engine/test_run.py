"""Whole runs through the public interface: what they leave, that they repeat, that they go on after any kill."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import time

import pytest
import torch
from interrupt import AtStep, always, unless
from resuming import NUMBERS, about_to_send, numbers_of, whole_with_copies

from fmtlbench.algorithms.fedhca2 import FedHCA2
from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.data import open as data_open
from fmtlbench.engine import checkpoint
from fmtlbench.engine import run as engine_run
from fmtlbench.engine.client import Client
from fmtlbench.engine.federation import Federation
from fmtlbench.engine.messages import Evaluate, Install
from fmtlbench.runs.store import RunStore


def test_a_run_leaves_what_the_design_says(shared_run):
    result = shared_run()
    assert result.folder.parts[-3:-1] == ("duo", "fedhca2")
    assert result.folder.name.startswith("nano-synth-s0-")
    names = {path.name for path in result.folder.iterdir()}
    assert names >= {*NUMBERS, "manifest.json", "timing.jsonl", "cost.json", "networks"}
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


def test_personal_images_are_held_out_of_training(shared_run):
    result = shared_run()
    # 16 and 12 images, a tenth held out: 2 and 1
    assert [c["samples"] for c in result.summary["clients"]] == [14, 11]


def test_bytes_follow_from_what_travels(shared_run):
    counts = [c["parameters"] for c in shared_run("local").summary["clients"]]
    travelling = sum(c["encoder"] + c["decoder"] for c in counts) * 4 * 3
    for algo, expected in (("local", 0), ("fedavg", travelling), ("fedhca2", travelling)):
        summary = shared_run(algo).summary
        assert (summary["bytes_up"], summary["bytes_down"]) == (expected, expected)
    only_encoder = shared_run("fedhca2", **{"algo.decoder": "none"}).summary
    assert only_encoder["bytes_up"] == sum(c["encoder"] for c in counts) * 4 * 3


def test_a_finished_run_is_shown_not_repeated(tiny_run, shared_run):
    first = tiny_run()
    assert not first.reused
    stamp = (first.folder / "summary.json").stat().st_mtime_ns
    again = tiny_run()
    assert again.reused and again.summary == first.summary
    assert (first.folder / "summary.json").stat().st_mtime_ns == stamp
    torch.manual_seed(12345)  # whatever the caller drew before must not matter
    torch.rand(7)
    fresh = tiny_run(fresh=True)
    assert not fresh.reused and numbers_of(fresh) == numbers_of(first) == numbers_of(shared_run())


def test_another_seed_and_other_methods_give_other_numbers(shared_run):
    seeds = [shared_run(seed=seed) for seed in (0, 1)]
    assert seeds[0].folder != seeds[1].folder
    runs = [*seeds, shared_run("local"), shared_run("fedavg")]
    assert len({tuple(r["value"] for r in run.scores) for run in runs}) == len(runs)


def test_training_lowers_the_loss(tiny_run):
    options = {"train.augment": [], "train.warmup_epochs": 0, "train.lr": 1e-2}
    rows = tiny_run("local", rounds=8, **options).folder / "metrics.jsonl"
    losses = [json.loads(line)["losses"]["nyud-multi"]["depth"] for line in rows.read_text().splitlines()]
    assert losses[-1] < 0.6 * losses[0]


# -- kill -9 ---------------------------------------------------------------------------------------------------------


def is_second(file, name):
    """Whether it is this file of the second round's checkpoint."""
    return "round-00002" in file.parent.name and file.name == name


def after(round, step=0):
    return lambda where, *_, **__: (where.done, where.steps) == (round, step)


# Which call a phase begins with.
PHASES = {
    "opening the data": (data_open, "open_split", lambda _, config, *names: names[:2] == ("nyud", "train")),
    "first step": (Client, "_step", after(0, 1)),
    "middle of training": (Client, "_step", after(1, 6)),
    "last steps": (Client, "_step", after(2, 6)),
    "gathering": (Federation, "exchange", after(1, 7)),
    "scattering": about_to_send(Install, done=1),
    "evaluating": about_to_send(Evaluate, done=1),
    "aggregating": (FedHCA2, "aggregate", lambda _, method, rnd: rnd.index == 1),
    "appending a row": (RunStore, "append", lambda _, store, metrics, timing: metrics["round"] == 2),
    "before a checkpoint": (engine_run, "save_checkpoint", lambda _, folder, done, write: done == 2),
    "inside a checkpoint": (checkpoint, "save_file", lambda _, __, file: is_second(file, "client-001.safetensors")),
    "checkpoint index": (checkpoint, "write_json", lambda _, file, index: is_second(file, "index.json")),
    "removing old checkpoints": (checkpoint, "available", lambda _, folder: (folder / "round-00003").exists()),
    "summing up": (engine_run, "add_constants", always),
    "writing the summary": (RunStore, "write_summary", always),
}


@pytest.fixture(scope="module")
def cut(tiny_run_in, tmp_path_factory):
    """(where a copy of a run lies for each phase, the whole run)."""
    base = tmp_path_factory.mktemp("cut")
    whole = whole_with_copies(tiny_run_in, base, PHASES)
    (rows,) = (base / "appending a row").rglob("metrics.jsonl")
    with rows.open("a") as file:
        file.write((whole.folder / "metrics.jsonl").read_text().splitlines()[1][:40])
    return base, whole


@pytest.mark.parametrize("phase", PHASES)
def test_what_a_kill_in_any_phase_leaves_is_gone_on_with(tiny_run, cut, phase):
    base, whole = cut
    resumed = tiny_run(out=base / phase)
    assert not resumed.reused
    assert numbers_of(resumed) == numbers_of(whole)


def test_killed_and_resumed_equals_uninterrupted(tiny_run, shared_run, tmp_path):
    """A real kill, of a process of its own, while it writes a checkpoint."""

    def doomed():
        in_second = lambda tensors, file: is_second(file, "client-000.safetensors")
        checkpoint.save_file = unless(checkpoint.save_file, in_second)
        tiny_run(out=tmp_path / "killed")

    child = multiprocessing.get_context("fork").Process(target=doomed)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert numbers_of(tiny_run(out=tmp_path / "killed")) == numbers_of(shared_run())


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
    assert numbers_of(tiny_run(out=tmp_path / "killed", rounds=6)) == numbers_of(whole)


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
