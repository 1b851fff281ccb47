"""Ways to end a run in the middle."""

from __future__ import annotations

import os
import signal

import pytest


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def after(count, function, then=die):
    """`function` until its `count`-th call, which kills the process instead."""
    calls = [0]

    def wrapped(*args, **kwargs):
        calls[0] += 1
        return then(*args, **kwargs) if calls[0] == count else function(*args, **kwargs)

    return wrapped


class Stopped(Exception):
    """A run that was stopped between two rounds."""


def stopped_and_whole(run, monkeypatch, folder, rounds_done=2):
    """(a run that was stopped after some rounds and resumed, the same run uninterrupted); `run(out=…)` runs it."""
    from fmtlbench.engine import run as engine_run

    whole, save = run(out=folder / "whole"), engine_run.save_checkpoint

    def stop(checkpoints, done, states):
        save(checkpoints, done, states)
        if done == rounds_done:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(engine_run, "save_checkpoint", stop)
        with pytest.raises(Stopped):
            run(out=folder / "stopped")
    return run(out=folder / "stopped"), whole
