"""A listener that keeps what a run says."""

from __future__ import annotations

from fmtlbench.listeners import Listener


class Notes(Listener):
    """What was noted is in `told`."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, message: str) -> None:
        self.told.append(message)
