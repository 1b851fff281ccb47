"""What a listener may be told. Every hook has a default that does nothing, so a listener states only what it wants."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import FmtlbenchError
from ..registry import Registry
from ..runs.folder import RunFolder

if TYPE_CHECKING:
    from ..config import RunConfig
    from ..engine.watch import EpochWatch
    from ..exchange import Party

LISTENERS = Registry("listener", "fmtlbench.listeners")


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
        """Where listeners write, each to a folder of its own; made by whoever does."""
        return RunFolder(self.folder).logs


class Listener:
    """Told what happens, in this order; a run that was finished before has no `begin`, and one that fails no `bill`.

    What a listener is handed is the run's own: read it, do not change it.
    """

    name: ClassVar[str] = ""  # set by the registry

    def preparing(self, what: str, done: int, total: int) -> None:
        """Data or predictions are being made."""

    def begin(self, start: Start) -> None:
        """The rounds begin, or go on."""

    def step(self, party: Party, watch: EpochWatch) -> None:
        """A client took a training step. `watch.latest()` has its losses; asking costs a wait on a GPU."""

    def round_done(self, row: Mapping[str, Any], timing: Mapping[str, Any]) -> None:
        """A round is over: its lines of metrics.jsonl and timing.jsonl, which are on disk."""

    def pretraining(self, what: str, step: int, steps: int, loss: float) -> None:
        """`fmtlbench pretrain` took so many steps."""

    def note(self, message: str) -> None:
        """Something worth a line."""

    def bill(self, cost: Mapping[str, Any]) -> None:
        """The run is finished: its cost.json."""

    def end(self) -> None:
        """Nothing more comes, however the run ended. May be told more than once."""


def import_extra(module: str, extra: str) -> Any:
    """Import a module of an optional package; if that is not there, say what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise FmtlbenchError(f"{error}; pip install 'fmtlbench[{extra}]'") from error
