"""Ways to end a run in the middle, each told by what happens then: a step, a round, a message, a call."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from fmtlbench.engine.executor import SerialExecutor
from fmtlbench.engine.messages import Train
from fmtlbench.listeners import Listener


class Stopped(BaseException):
    """A run that was stopped, as by Ctrl-C: no listener's mistake, which would be caught."""


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def stop(*_, **__):
    raise Stopped


class AtStep(Listener):
    """Interrupts a run after a training step of a round, both counted from 1 and over all clients."""

    def __init__(self, number, step=1, then=stop):
        self.number, self.wanted, self.then = number, step, then

    def begin(self, start):
        self.done, self.steps = start.done, 0

    def step(self, party, watch):
        self.steps += 1
        if (self.done + 1, self.steps) == (self.number, self.wanted):
            self.then()

    def round_done(self, row, timing):
        self.done, self.steps = row["round"], 0


class AfterRound(Listener):
    """Interrupts a run after a round, counted from 1: its rows are on disk, and its checkpoint where one is due."""

    def __init__(self, number, then=stop):
        self.number, self.then = number, then

    def round_done(self, row, timing):
        if row["round"] == self.number:
            self.then()


class AtMessage(SerialExecutor):
    """Interrupts a run at the first message of a kind in a round, counted from 1.

    Args:
        kind: The message's class.
        number: The round's.
        client: To this client only; None is any.
        following: Only once a message of this kind was sent in the round.
        replied: When the clients have answered and the server goes on; else before anybody hears it.
        then: What happens.
    """

    def __init__(self, kind, number, client=None, following=None, replied=False, then=die):
        super().__init__()
        self.kind, self.number, self.client, self.following = kind, number, client, following
        self.replied, self.then = replied, then
        self.round, self.sent = 0, []  # the kinds of the round's messages so far

    def map(self, messages, on_step=None):
        for message in messages.values():
            if isinstance(message, Train):
                self.round, self.sent = message.index + 1, []
                break
        told = [index for index, message in messages.items() if isinstance(message, self.kind)]
        meant = bool(told) if self.client is None else self.client in told
        chosen = meant and self.round == self.number and self.following in (None, *self.sent)
        if chosen and not self.replied:
            self.then()
        yield from super().map(messages, on_step)
        self.sent += map(type, messages.values())
        if chosen and self.replied:
            self.then()


def unless(function, when, then=die):
    """`function`, but `then` with the same arguments where `when` says so of them."""

    def wrapped(*args, **kwargs):
        return then(*args, **kwargs) if when(*args, **kwargs) else function(*args, **kwargs)

    return wrapped


def always(*_, **__):
    return True


def stopped_and_whole(run, folder, rounds_done=2):
    """(a run that was stopped after some rounds and resumed, the same run uninterrupted); `run(out=…)` runs it."""
    whole = run(out=folder / "whole")
    with pytest.raises(Stopped):
        run(out=folder / "stopped", progress=AfterRound(rounds_done))
    return run(out=folder / "stopped"), whole


def killed_and_whole(run, folder, number=3):
    """(a run whose process was killed in a round and that was resumed, the same run uninterrupted)."""

    def doomed():
        run(out=folder / "killed", progress=AtStep(number, then=die))

    child = multiprocessing.get_context("fork").Process(target=doomed)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    return run(out=folder / "killed"), run(out=folder / "whole")
