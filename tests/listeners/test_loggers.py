"""TensorBoard and Weights & Biases for real: what they write is read back, and a resumed run has no step twice."""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from interrupt import AfterRound, AtStep, Stopped
from resuming import numbers_of

from fmtlbench.listeners import LISTENERS, Start
from fmtlbench.listeners._rounds import scalars_of
from fmtlbench.runs.folder import RunFolder


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Tag → (step, value) as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "logs" / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def history(folder: Path) -> list[tuple[int, dict[str, float]]]:
    """(step, values) of every session, from the files that `wandb sync` would send."""
    from wandb.proto.wandb_internal_pb2 import Record

    rows = []
    for file in sorted((folder / "logs" / "wandb").glob("offline-run-*/run-*.wandb")):
        until = time.monotonic() + 30
        records: list[Record] = []
        # A process of its own writes them, and may still be at it when the run is over.
        while not any(r.WhichOneof("record_type") == "exit" for r in records) and time.monotonic() < until:
            time.sleep(0.1)
            records = [Record.FromString(data) for data in stored(file.read_bytes())]
        for record in records:
            if record.WhichOneof("record_type") == "history":
                values = {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item}
                rows.append((record.history.step.num, values))
    return rows


def stored(content: bytes):
    """The records of a .wandb file: blocks of 32 KiB, in them pieces with checksum, length and kind before each."""
    place, parts = 7, []  # the file's own header
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:  # no room for another header
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        if kind not in (1, 2, 3, 4):
            place += left
            continue
        parts.append(content[place + 7 : place + 7 + length])
        place += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield b"".join(parts)
            parts = []


def expected(folder: Path) -> list[dict[str, float]]:
    files = RunFolder(folder)
    return [scalars_of(row, timing) for row, timing in zip(files.rounds(), files.timing())]


def test_the_numbers_of_a_round():
    score = {"client": "a", "split": "global", "task": "depth", "metric": "RMSE", "value": 0.5}
    row = {"losses": {"a": {"depth": 1.0}}, "grad_norm": {"a": None}, "bytes_up": 3, "bytes_down": 4,
           "scores": [score, {**score, "metric": "none", "value": None}]}  # fmt: skip
    timing = {"seconds": {"step": 2.0}, "energy": {"kwh": 0.1, "co2e_g": 5.0}}
    assert scalars_of(row, timing) == {
        "loss/a/depth": 1.0, "scores/a/global/depth/RMSE": 0.5, "seconds/step": 2.0, "bytes/up": 3.0,
        "bytes/down": 4.0, "energy/kwh": 0.1, "energy/co2e_g": 5.0,
    }  # fmt: skip
    assert not any(name.startswith("energy") for name in scalars_of(row, {**timing, "energy": None}))


@pytest.fixture
def offline(monkeypatch):
    """Weights & Biases as it is without an account and without settings."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "true")  # the listener turns it off: put back after the test


def made_again(tiny_run, folder, log):
    """A run that stops when its first round is told of and not yet checkpointed, and the same resumed."""
    asked = {"algo": "fedavg", "out": folder / "told", "log": log, "checkpoint_every": 2}
    with pytest.raises(Stopped):
        tiny_run(progress=AtStep(2), **asked)
    return tiny_run(**asked)


def never_told(tiny_run, folder, log):
    """A run that stops after the checkpoint of its second round, before anybody is told of it, and the same resumed."""
    run = partial(tiny_run, "fedavg", out=folder / "told", log=log)
    with pytest.raises(Stopped):
        run(progress=AfterRound(2))
    return run()


def asked_for_late(tiny_run, folder, log):
    """A run that has a listener from its third round on."""
    run = partial(tiny_run, "fedavg", out=folder / "told")
    with pytest.raises(Stopped):
        run(progress=AtStep(3))
    return run(log=log)


@pytest.mark.parametrize("way", [made_again, never_told, asked_for_late])
def test_each_has_every_round_once(way, tiny_run, shared_run, tmp_path, offline):
    plain, told = shared_run("fedavg"), way(tiny_run, tmp_path, "tensorboard,wandb")
    theirs, ours = numbers_of(plain), numbers_of(told)
    if way is made_again:  # it says how often there are checkpoints
        del theirs["config.yaml"], ours["config.yaml"]
    assert ours == theirs
    check_tensorboard(told)
    check_wandb(told, sessions=1 if way is asked_for_late else 2)


def check_tensorboard(told) -> None:
    rounds, found = expected(told.folder), curves(told.folder)
    assert set(found) == {name for row in rounds for name in row}
    for name, points in found.items():
        steps = [step for step, row in enumerate(rounds, 1) if name in row]
        assert [step for step, _ in points] == steps, name
        if not name.startswith("seconds/"):  # a round that is made again takes another time
            assert [value for _, value in points] == pytest.approx([rounds[step - 1][name] for step in steps])


def check_wandb(told, sessions: int) -> None:
    """It has written offline, in as many sessions as there were."""
    found = history(told.folder)
    assert [step for step, _ in found] == [1, 2, 3]
    for (_, values), row in zip(found, expected(told.folder)):
        fixed = {name: value for name, value in row.items() if not name.startswith("seconds/")}
        assert {name: values[name] for name in fixed} == pytest.approx(fixed)
    identity = (told.folder / "logs" / "wandb" / "run-id").read_text().strip()
    names = [path.name for path in (told.folder / "logs" / "wandb").glob("offline-run-*")]
    assert len(names) == sessions
    assert all(f"-{identity}" in name for name in names)  # two in one second have a number behind it
    assert sys.exit.__module__ == "sys"
    assert identity.startswith(told.summary["config_hash"][:8])


@pytest.mark.parametrize(("mode", "resume"), [("", None), ("offline", None), ("online", "allow"), ("disabled", None)])
def test_wandb_mode_is_respected(mode, resume, tmp_path, monkeypatch):
    """With a stand-in for the package: nothing here may reach a server."""
    from fmtlbench.config.resolve import resolve

    calls = []
    run = SimpleNamespace(finish=lambda exit_code: calls.append(exit_code))
    stand_in = SimpleNamespace(init=lambda **given: calls.append(given) or run, Settings=lambda **given: given)
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    monkeypatch.setenv("WANDB_MODE", mode)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "true")
    for billed in (False, True):
        listener = LISTENERS["wandb"]()
        listener.begin(Start(2, 0, 1, tmp_path, resolve("local", "st_mt_1")))
        if billed:
            listener.bill({})
        listener.end()
        listener.end()
    first, failed, second, finished = calls
    assert (failed, finished) == (1, 0)
    assert first["id"] == second["id"] and first["mode"] == (mode or "offline") and first["resume"] == resume
    assert first["dir"] == str(tmp_path / "logs") and first["config"]["seed"] == 0
    assert (os.environ["WANDB_ERROR_REPORTING"] == "false") == (first["mode"] == "offline")
