"""Ways to end a run in the middle."""

from __future__ import annotations

import os
import signal


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def after(count, function, then=die):
    """`function` until its `count`-th call, which kills the process instead."""
    calls = [0]

    def wrapped(*args, **kwargs):
        calls[0] += 1
        return then(*args, **kwargs) if calls[0] == count else function(*args, **kwargs)

    return wrapped
