"""TensorBoard and Weights & Biases for real: what they write is read back, and a resumed run has no step twice."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fmtlbench.listeners import LISTENERS, Start
from fmtlbench.listeners._scalars import scalars_of
from fmtlbench.runs.folder import RunFolder
from fmtlbench.runs.layout import ROUNDS, SUMMARY


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
        for data in stored(file.read_bytes()):
            record = Record.FromString(data)
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


def interrupted(monkeypatch, tiny_run, after: int, **asked):
    """A run that stops in the round after so many, whatever was checkpointed by then."""
    from fmtlbench.engine.federation import Federation

    original = Federation.train

    def train(self, index, on_step=None):
        if index == after:
            raise KeyboardInterrupt
        return original(self, index, on_step)

    with monkeypatch.context() as patch:
        patch.setattr(Federation, "train", train)
        with pytest.raises(KeyboardInterrupt):
            tiny_run(**asked)


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


def test_tensorboard_and_a_resumed_run(tiny_run, tmp_path, monkeypatch):
    plain = tiny_run("fedavg")
    asked = {"algo": "fedavg", "out": tmp_path / "told", "log": "tensorboard", "checkpoint_every": 2}
    interrupted(monkeypatch, tiny_run, 1, **asked)  # round 1 is logged and not checkpointed: it is made again
    told = tiny_run(**asked)
    for name in (ROUNDS, SUMMARY):
        assert (told.folder / name).read_bytes() == (plain.folder / name).read_bytes()
    rounds = expected(told.folder)
    found = curves(told.folder)
    assert set(found) == {name for row in rounds for name in row}
    for name, points in found.items():
        steps = [step for step, row in enumerate(rounds, 1) if name in row]
        assert [step for step, _ in points] == steps, name
        assert [value for _, value in points] == pytest.approx([rounds[step - 1][name] for step in steps], rel=1e-6)
    assert len(list((told.folder / "logs" / "tensorboard").iterdir())) == 2  # one file per session


def test_wandb_writes_offline_and_goes_on(tiny_run, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "true")  # whatever it was: put back after the test
    plain = tiny_run("fedavg")
    asked = {"algo": "fedavg", "out": tmp_path / "told", "log": "wandb"}
    interrupted(monkeypatch, tiny_run, 2, **asked)
    told = tiny_run(**asked)
    for name in (ROUNDS, SUMMARY):
        assert (told.folder / name).read_bytes() == (plain.folder / name).read_bytes()
    found, rounds = history(told.folder), expected(told.folder)
    assert [step for step, _ in found] == [1, 2, 3]
    for (_, values), row in zip(found, rounds):
        assert {name: values[name] for name in row} == pytest.approx(row)
    identity = (told.folder / "logs" / "wandb" / "run-id").read_text().strip()
    sessions = [path.name for path in (told.folder / "logs" / "wandb").glob("offline-run-*")]
    assert len(sessions) == 2 and all(name.endswith(f"-{identity}") for name in sessions)
    assert identity.startswith(told.summary["config_hash"][:8])


@pytest.mark.parametrize(("mode", "resume"), [("", None), ("offline", None), ("online", "allow"), ("disabled", None)])
def test_wandb_mode_is_respected(mode, resume, tmp_path, monkeypatch):
    """With a stand-in for the package: nothing here may reach a server."""
    from fmtlbench.config import resolve

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
