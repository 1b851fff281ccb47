"""What a listener may be told. Every hook has a default that does nothing, so a listener states only what it wants."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ..base.errors import FmtlbenchError
from ..base.registry import Registry
from ..runs.folder import RunFolder
from ..runs.records import Cost, RoundRow, TimingRow

if TYPE_CHECKING:
    from ..config.run_config import RunConfig
    from ..exchange import Party

LISTENERS: Registry[type[Listener]] = Registry("listener", "fmtlbench.listeners")


class Losses(Protocol):
    """The losses of the step that was just taken."""

    def latest(self) -> dict[str, float]:
        """Return the losses by task; asking costs a wait on a GPU."""


@dataclass(frozen=True)
class Start:
    """A run as its rounds begin."""

    rounds: int
    done: int  # rounds that earlier sessions did: more than 0 is a run that goes on
    steps_per_round: int  # of all clients together, if everybody is there
    folder: Path  # of the run
    config: RunConfig

    @property
    def logs(self) -> Path:
        """Return where listeners write, each to a folder of its own; made by whoever does."""
        return RunFolder(self.folder).logs


class Listener:
    """Told what happens, in this order; a run that was finished before has no `begin`, and one that fails no `bill`.

    What a listener is handed is the run's own: read it, do not change it.
    """

    name: ClassVar[str] = ""  # set by the registry

    def preparing(self, what: str, done: int, total: int) -> None:
        """Hear that data or predictions are being made."""

    def begin(self, start: Start) -> None:
        """Hear that the rounds begin, or go on."""

    def step(self, party: Party, watch: Losses) -> None:
        """Hear that a client took a training step; `watch.latest()` has its losses."""

    def round_done(self, row: RoundRow, timing: TimingRow) -> None:
        """Hear that a round is over: its lines of metrics.jsonl and timing.jsonl, which are on disk."""

    def note(self, message: str) -> None:
        """Hear something worth a line."""

    def bill(self, cost: Cost) -> None:
        """Hear what the finished run cost: its cost.json."""

    def end(self) -> None:
        """Hear that nothing more comes, however the run ended. May be told more than once."""


def import_extra(module: str, extra: str) -> Any:
    """Import a module of an optional package; if that is not there, say what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise FmtlbenchError(f"{error}; pip install 'fmtlbench[{extra}]'") from error
