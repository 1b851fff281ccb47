"""What loggers that draw curves share: a round as named numbers, each round once, whatever was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..base.files import write_text
from ..runs.folder import RunFolder
from ..runs.records import RoundRow, TimingRow
from ._base import Listener, Start


class RoundLogger(Listener):
    """Logs every round of a run, in a folder of its own name.

    A file there says which round was the last: one that is made again after a kill is not logged twice, and rounds that
    nobody was told of, since the logger was not asked for then, are made up for from the run's files.
    """

    def open(self, start: Start, place: Path) -> None:
        """Begin to write, in the folder `place`, which is there."""
        raise NotImplementedError

    def log(self, step: int, scalars: dict[str, float]) -> None:
        """Write a round's numbers."""
        raise NotImplementedError

    def begin(self, start: Start) -> None:
        place = start.logs / self.name
        place.mkdir(parents=True, exist_ok=True)
        self._mark = place / "last-round"
        self._last = int(self._mark.read_text(encoding="utf-8")) if self._mark.exists() else 0
        self.open(start, place)
        files = RunFolder(start.folder)
        for row, timing in zip(files.rounds(), files.timing(), strict=True):
            self.round_done(row, timing)

    def round_done(self, row: RoundRow, timing: TimingRow) -> None:
        if row["round"] > self._last:
            self.log(row["round"], scalars_of(row, timing))
            self._last = row["round"]
            write_text(self._mark, f"{self._last}\n")


def scalars_of(row: RoundRow, timing: TimingRow) -> dict[str, float]:
    """Name the numbers of a round; what it does not have (no score, no sensor) is left out."""
    return {name: float(value) for name, value in _all(row, timing) if value is not None}


def _all(row: RoundRow, timing: TimingRow) -> Iterator[tuple[str, float | None]]:
    """Yield every number of a round with its name; None where it has no value."""
    for client, losses in row["losses"].items():
        yield from ((f"loss/{client}/{task}", loss) for task, loss in losses.items())
    yield from ((f"grad_norm/{client}", norm) for client, norm in row["grad_norm"].items())
    for key, scores in (("scores", row.get("scores", [])), ("scores_before", row.get("scores_before", []))):
        for score in scores:
            place = (key, score["client"], score["split"], score["task"], score["metric"])
            yield "/".join(place), score["value"]
    yield from ((f"seconds/{phase}", spent) for phase, spent in timing["seconds"].items())
    yield from (("bytes/up", row["bytes_up"]), ("bytes/down", row["bytes_down"]))
    if energy := timing.get("energy"):  # of all rounds so far
        yield from (("energy/kwh", energy["kwh"]), ("energy/co2e_g", energy["co2e_g"]))
