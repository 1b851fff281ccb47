"""What goes wrong on disks and in training: one clear line, and nothing that was finished is lost."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import resource
import shutil
import signal
from functools import partial

import pytest
import torch
from interrupt import AtStep, Stopped, unless
from notes import Notes
from resuming import cut_and_whole, numbers_of

from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.engine import checkpoint, precision
from fmtlbench.engine.losses import LOSSES, weighted_bce
from fmtlbench.listeners import Listener
from fmtlbench.tasks import TASKS


class Armed(AtStep):
    """From a training step of a round on, `armed` is true, until the next step is over."""

    def __init__(self, number, step):
        super().__init__(number, step, self.arm)
        self.armed = False

    def arm(self):
        self.armed = True

    def step(self, party, watch):
        self.armed = False
        super().step(party, watch)


@pytest.fixture(scope="module")
def stopped_once(tiny_run_in, tmp_path_factory):
    """Where a three-round run lies that was stopped in its third round."""
    out = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Stopped):
        tiny_run_in(out, progress=AtStep(3, 4))
    return out


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """The folder of that run, where `tiny_run` looks for it."""
    shutil.copytree(stopped_once, tmp_path / "runs")
    (manifest,) = (tmp_path / "runs").rglob("manifest.json")
    assert checkpoint.available(manifest.parent / "checkpoint") == [1, 2]
    return manifest.parent


def files(folder, done):
    return sorted((folder / "checkpoint" / f"round-{done:05d}").iterdir())


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "index"])
def test_a_damaged_newest_checkpoint_costs_a_round_not_the_run(tiny_run, shared_run, stopped, damage):
    tensors = next(f for f in files(stopped, 2) if f.name == "client-001.safetensors")
    if damage == "truncate":
        os.truncate(tensors, tensors.stat().st_size // 2)
    elif damage == "flip":
        content = bytearray(tensors.read_bytes())
        content[-3] ^= 1
        tensors.write_bytes(content)
    elif damage == "remove":
        tensors.unlink()
    else:
        next(f for f in files(stopped, 2) if f.suffix == ".json").write_text("{")

    notes = Notes()
    resumed = tiny_run(progress=notes)
    assert any("damaged checkpoint" in note and "round-00002" in note for note in notes.told)
    assert any("going on after round 1 of 3" in note for note in notes.told)
    assert numbers_of(resumed) == numbers_of(shared_run())


def test_no_intact_checkpoint_is_an_error_and_touches_nothing(tiny_run, stopped):
    for done in (1, 2):
        for file in files(stopped, done):
            os.truncate(file, 10)
    before = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}
    with pytest.raises(FmtlbenchError, match="no older checkpoint is intact; --fresh") as caught:
        tiny_run()
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()} == before
    with pytest.raises(Stopped):
        tiny_run(fresh=True, progress=AtStep(1))  # its first round


def test_a_full_disk_keeps_the_last_good_round(tiny_run, shared_run, tmp_path, monkeypatch):
    def full(tensors, file):
        file.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    def in_second_round(tensors, file):
        return "round-00002" in file.parent.name and file.name == "client-000.safetensors"

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", unless(checkpoint.save_file, in_second_round, full))
        with pytest.raises(
            FmtlbenchError, match=r"No space left on device.*free some space and run the same"
        ) as caught:
            tiny_run()
    assert "\n" not in str(caught.value)
    (manifest,) = (tmp_path / "runs").rglob("manifest.json")
    assert checkpoint.available(manifest.parent / "checkpoint") == [1]
    assert [p.name for p in (manifest.parent / "checkpoint").iterdir()] == ["round-00001"]
    assert numbers_of(tiny_run()) == numbers_of(shared_run())


def test_a_disk_that_really_refuses_is_one_line(tiny_run, shared_run, tmp_path):
    """The system's own refusal, here by a limit on file sizes, goes through every layer that writes."""
    said = tmp_path / "said.txt"

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # a client's state has several MB
        try:
            tiny_run("local", rounds=2)
        except FmtlbenchError as error:
            said.write_text(str(error))

    shared_run(algo="local", rounds=1)  # the data are in the cache from here on
    child = multiprocessing.get_context("fork").Process(target=limited)
    child.start()
    child.join(120)
    message = said.read_text()
    assert "could not save a checkpoint" in message and "run the same command again" in message
    assert "\n" not in message
    assert not tiny_run("local", rounds=2).reused


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_an_unwritable_output_folder_is_one_line(tiny_run, tmp_path):
    blocked = tmp_path / "blocked"
    if os.geteuid() == 0:
        blocked.write_text("a file where a folder should be")  # root may write anywhere, but not below a file
    else:
        blocked.mkdir(mode=0o500)
    with pytest.raises(FmtlbenchError, match=r"could not create the run folder|a file, expected a folder") as caught:
        tiny_run(out=blocked)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_a_nan_names_client_round_and_task_and_keeps_the_checkpoint(tiny_run, tmp_path, monkeypatch, where):
    fault = Armed(2, 4)  # of seven steps, nyud-multi's are the last four

    def poisoned(raw, label, **options):
        loss = weighted_bce(raw, label, **options)
        if not fault.armed:
            return loss
        if where == "loss":
            return loss * float("nan")
        raw.register_hook(lambda gradient: gradient * float("inf"))
        return loss

    assert TASKS["edge"].loss == "weighted_bce"
    monkeypatch.setitem(LOSSES, "weighted_bce", poisoned)
    with pytest.raises(FmtlbenchError, match=f"client nyud-multi, round 2, step 2: the {where} of edge is not"):
        tiny_run(progress=fault)
    (manifest,) = (tmp_path / "runs").rglob("manifest.json")
    assert checkpoint.available(manifest.parent / "checkpoint") == [1]
    assert not (manifest.parent / "summary.json").exists()


def test_changed_data_are_not_mixed_into_a_run(tiny_run, stopped):
    path = stopped / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["data"]["nyud/train"] = "0" * 64
    path.write_text(json.dumps(manifest))
    with pytest.raises(FmtlbenchError, match="nyud/train has changed since this run began"):
        tiny_run()


def test_resuming_with_other_versions_is_said(tiny_run, stopped):
    path = stopped / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["sessions"][0]["versions"]["torch"] = "1.0"
    path.write_text(json.dumps(manifest))
    notes = Notes()
    tiny_run(progress=notes)
    assert any("torch 1.0 →" in note for note in notes.told)
    assert len(json.loads(path.read_text())["sessions"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_mixed_precision_trains_and_resumes(tiny_run, shared_run, tmp_path, amp):
    resumed, whole = cut_and_whole(partial(tiny_run, **{"train.amp": amp}), tmp_path, 2)
    assert numbers_of(resumed) == numbers_of(whole)
    assert [r["value"] for r in whole.scores] != [r["value"] for r in shared_run().scores]


def test_a_precision_that_ends_the_process_is_one_line(tiny_run, monkeypatch):
    monkeypatch.setattr(precision, "PROBE", "import os, signal  # {name}\nos.kill(os.getpid(), signal.SIGILL)")
    with pytest.raises(FmtlbenchError, match=r"bf16 arithmetic ends the process on this CPU .*train\.amp=none"):
        tiny_run(**{"train.amp": "bf16"})


@pytest.fixture
def overflow(monkeypatch):
    """Have every loss send infinite gradients back as long as the answer is true."""

    def begin(lasts):
        def overflowing(raw, label, loss, **options):
            if lasts():
                raw.register_hook(lambda gradient: gradient * float("inf"))
            return loss(raw, label, **options)

        for name, loss in list(LOSSES.items()):
            monkeypatch.setitem(LOSSES, name, partial(overflowing, loss=loss))

    return begin


class Steps(Listener):
    """Counts training steps."""

    taken = 0

    def step(self, party, watch):
        self.taken += 1


@pytest.mark.usefixtures("checkpoints_stay")
def test_an_overflow_under_scaling_halves_the_scale_and_skips_the_step(tiny_run, monkeypatch, overflow):
    steps = Steps()
    overflow(lambda: steps.taken == 0)  # in the first client's first step
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=64.0))
    folder = tiny_run("local", rounds=1, progress=steps, **{"train.amp": "fp16"}).folder
    kept = [checkpoint.Checkpoint(folder / "checkpoint", 1).read(f"client-00{i}")["main"] for i in (0, 1)]
    assert [state["scaler"]["scale"] for state in kept] == [32.0, 64.0]
    assert kept[0]["vector"].isfinite().all()


def test_gradients_that_overflow_at_any_scale_stop_the_run(tiny_run, overflow, monkeypatch):
    overflow(lambda: True)
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=8.0))  # four steps go down
    with pytest.raises(FmtlbenchError, match="gradients of depth, edge overflow fp16"):
        tiny_run("local", rounds=20, **{"train.amp": "fp16"})


def test_settings_of_the_process_are_put_back(tiny_run):
    torch.set_num_threads(2)
    try:
        tiny_run("local", rounds=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize(
    "overrides, message",
    [
        ({"model.backbone": "swin_nan"}, "no backbone 'swin_nan'; did you mean 'swin_nano'"),
        ({"data.size.nyud": [40, 32]}, "multiples of 32"),
        ({"data.train_samples.pascal": 1}, "only 1 images to share, two each"),
    ],
)
def test_a_refusal_leaves_no_run_folder(tiny_run, tmp_path, overrides, message):
    with pytest.raises(FmtlbenchError, match=message):
        tiny_run(**overrides)
    assert not list((tmp_path / "runs").rglob("*"))
