"""Writing a run folder, so that a run can be resumed after a kill at any moment."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import FmtlbenchError
from ..files import write_json, write_text
from . import file_names
from .folder import DamagedRun, NewerFormat, RunFolder, with_format
from .records import FORMAT, Cost, Manifest, RoundRow, Summary, TimingRow

if TYPE_CHECKING:
    from ..config import RunConfig

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no flock: two processes on one run are not kept apart there
    fcntl = None


class StoreError(FmtlbenchError):
    """The run folder could not be read or written."""


class RunStore:
    """One run's folder."""

    def __init__(self, out: Path, config: RunConfig) -> None:
        self.config, self.out = config, Path(out)
        self.folder = self.out / config.folder()
        self.files = RunFolder(self.folder)
        self.checkpoints = self.files.checkpoints

    def check(self) -> None:
        """Find out early that the output folder cannot be had."""
        with self.writing("create the run folder"):
            self.out.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def opened(self, fresh: bool = False) -> Iterator[RunStore]:
        """Create the folder, keep other processes out of it, and write the config."""
        with self.writing("create the run folder"):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = self.files.lock.open("w")
        with lock:
            self._take(lock)
            with self.writing("write the config"):
                if fresh:
                    self._clear()
                self.checkpoints.mkdir(exist_ok=True)
                if not self.files.has_config():
                    write_text(self.folder / file_names.CONFIG, f"format: {FORMAT}\n{self.config.dump()}")
            yield self

    def _take(self, lock: TextIO) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"{self.folder}: another process is working on this run") from None

    def _clear(self) -> None:
        """Remove what the run left, for --fresh."""
        for name in file_names.FILES:
            (self.folder / name).unlink(missing_ok=True)
        folders = [file_names.CHECKPOINTS, file_names.FIGURES, file_names.LOGS]
        for path in [*(self.folder / name for name in folders), *self.folder.glob(f"{file_names.PREDICTIONS}*")]:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turn a disk's refusal into one line that says what is safe."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            hint = "free some space and" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "mend that, then"
            raise StoreError(
                f"could not {what} in {self.folder}: {reason}; nothing written before is lost: "
                f"{hint} run the same command again to go on"
            ) from None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Add to what is damaged how the run can be had all the same."""
        try:
            yield
        except NewerFormat:
            raise
        except DamagedRun as error:
            raise StoreError(f"{error}; --fresh starts the run over") from None

    # -- finished runs -----------------------------------------------------------------------------------------------

    def summary(self) -> Summary | None:
        """Read what a finished run found; None: it is not finished."""
        with self.reading():
            return self.files.summary()

    def write_summary(self, summary: Summary, cost: Cost) -> Summary:
        """Write both, the summary last, and return it as it is read back."""
        written = with_format(summary)
        with self.writing("write the summary"):
            write_json(self.folder / file_names.COST, with_format(cost))
            write_json(self.folder / file_names.SUMMARY, written)
        return written

    # -- rows --------------------------------------------------------------------------------------------------------

    def append(self, metrics: RoundRow, timing: TimingRow) -> None:
        """Add a line each about the round and what it took, on disk when this returns."""
        with self.writing("append a round"):
            for name, line in ((file_names.TIMING, with_format(timing)), (file_names.ROUNDS, with_format(metrics))):
                with (self.folder / name).open("a", encoding="utf-8") as file:
                    file.write(_lines([line]))
                    file.flush()
                    os.fsync(file.fileno())

    def rounds(self) -> list[RoundRow]:
        """Read what every round found."""
        with self.reading():
            return self.files.rounds()

    def timing(self) -> list[TimingRow]:
        """Read what every round took."""
        with self.reading():
            return self.files.timing()

    def keep_rounds(self, done: int) -> None:
        """Forget rows of rounds after the first `done`: they will be made again, identically. What they took stays.

        Raises:
            StoreError: One of the first `done` rounds has no row, or two; nothing was touched.
        """
        rounds, timing = self.rounds(), self.timing()
        for name, rows in ((file_names.ROUNDS, rounds), (file_names.TIMING, timing)):
            self._check_complete(name, [row["round"] for row in rows if row["round"] <= done], done)
        with self.writing("trim the rows"):
            traffic = {row["round"]: row for row in rounds}
            lost = [row for row in timing if row["round"] > done]
            for row in lost:
                if (found := traffic.get(row["round"])) is not None:
                    row |= {"bytes_up": found["bytes_up"], "bytes_down": found["bytes_down"]}
            self.set_aside(lost)
            for name, rows in ((file_names.ROUNDS, rounds), (file_names.TIMING, timing)):
                text = _lines([row for row in rows if row["round"] <= done])
                path = self.folder / name
                if path.exists() and path.read_text(encoding="utf-8") != text:
                    write_text(path, text)

    def _check_complete(self, name: str, there: list[int], done: int) -> None:
        if there != list(range(1, done + 1)):
            raise StoreError(
                f"{self.folder / name} has rows of {len(there)} rounds where the checkpoint has done {done}, one row "
                "each; --fresh starts the run over"
            )

    def set_aside(self, rows: list[TimingRow]) -> None:
        """Keep the timing rows of rounds that are made again, each once."""
        known = self.repeated()
        seen = {_identity(row) for row in known}
        new = [with_format(row) for row in rows if _identity(row) not in seen]
        if new:
            write_text(self.folder / file_names.REPEATED, _lines([*known, *new]))

    def repeated(self) -> list[TimingRow]:
        """Read what was set aside; a damaged file is no reason to stop, it only says what was spent."""
        try:
            return self.files.repeated()
        except DamagedRun:
            return []

    # -- manifest ----------------------------------------------------------------------------------------------------

    def manifest(self) -> Manifest | None:
        """Read where the numbers came from."""
        with self.reading():
            return self.files.manifest()

    def write_manifest(self, manifest: Manifest) -> None:
        """Write where the numbers came from."""
        with self.writing("write the manifest"):
            write_json(self.folder / file_names.MANIFEST, with_format(manifest))


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def _identity(row: TimingRow) -> tuple[str | None, int, bool]:
    """Return the key of a timing row (session, round, unfinished): a round can be cut off in several sessions."""
    return row.get("session"), row["round"], row.get("unfinished", False)
