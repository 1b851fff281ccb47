"""Several listeners as one. None of them can end a run: one that fails is dropped, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from ..base.errors import FmtlbenchError, UsageError, one_line, shorten
from ..exchange import Party
from ..runs.records import Cost, RoundRow, TimingRow
from ._base import LISTENERS, Listener, Losses, Start


def find_listeners(names: Sequence[str]) -> list[type[Listener]]:
    """Find the classes that `--log` names.

    Raises:
        UsageError: There is none of a name, or it is no listener.
    """
    found = [LISTENERS.resolve(name, "--log") for name in names]
    for kind in found:
        if not (isinstance(kind, type) and issubclass(kind, Listener)):
            raise UsageError(f"--log: {kind.__qualname__} is not a subclass of fmtlbench.listeners.Listener")
    return found


class Listeners(Listener):
    """Tells every member what it is told. Ctrl-C passes."""

    def __init__(self, members: Iterable[Listener] = ()) -> None:
        self.members = list(members)

    def add(self, kind: type[Listener]) -> None:
        """Start one more, unless there is one of the kind; one that does not start is told of and left out."""
        if any(type(member) is kind for member in self.members):
            return
        try:
            self.members.append(kind())
        except (Exception, SystemExit) as error:
            self._warn(kind, error)

    def preparing(self, what: str, done: int, total: int) -> None:
        self._tell("preparing", what, done, total)

    def begin(self, start: Start) -> None:
        self._tell("begin", start)

    def step(self, party: Party, watch: Losses) -> None:
        self._tell("step", party, watch)

    def round_done(self, row: RoundRow, timing: TimingRow) -> None:
        self._tell("round_done", row, timing)

    def note(self, message: str) -> None:
        self._tell("note", message)

    def bill(self, cost: Cost) -> None:
        self._tell("bill", cost)

    def end(self) -> None:
        self._tell("end")

    def _tell(self, hook: str, *what: Any) -> None:
        for member in tuple(self.members):
            try:
                getattr(member, hook)(*what)
            except (Exception, SystemExit) as error:
                self.members = [other for other in self.members if other is not member]
                with suppress(Exception, SystemExit):  # it may hold files or a display
                    member.end()
                self._warn(type(member), error)

    def _warn(self, kind: type[Listener], error: BaseException) -> None:
        """Tell the others; where none of them says anything, the process."""
        own = isinstance(error, FmtlbenchError)  # says all there is to say
        reason = shorten(one_line(error if own else f"{type(error).__name__}: {error}"), longest=400)
        message = f"--log {kind.name or kind.__qualname__}: {reason}; the run goes on without it"
        if all(getattr(type(member), "note", None) is Listener.note for member in self.members):
            warnings.warn(message, stacklevel=2)
        else:
            self.note(message)
