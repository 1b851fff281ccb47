"""Writing a run folder, so that a run can be resumed after a kill at any moment."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..base.errors import UsageError
from ..base.files import remove_folder, write_json, write_text
from ..base.stored import FORMAT, DamagedRun, NewerFormat
from ..config.keep import NONE
from ..config.request import SAME_CODE
from ..config.run_config import RunConfig
from . import file_names
from .code_identity import CodeIdentity
from .folder import RunFolder, with_format
from .lock import StoreError, take_lock
from .recorded_code import choose_run_folder
from .records import Cost, Manifest, RoundRow, Summary, TimingRow

START_OVER = "; --fresh starts the run over"


class RunStore:
    """One run's folder: that of its config, or a second one where other code has made the first (`choose_run_folder`).

    Args:
        out: The folder that runs are kept in.
        config: Of the run.
        code: By which it is made.
        reuse: Whether a run by other code will do: `same-code` or `any`.
    """

    def __init__(self, out: Path, config: RunConfig, code: CodeIdentity, reuse: str = SAME_CODE) -> None:
        self.config, self.out = config, Path(out)
        self.code, self.reuse = code, reuse
        self.base = self.out / config.folder()
        self.choose_folder()

    def choose_folder(self) -> None:
        """Decide by what lies there now which folder is the run's; `chosen` tells of other code if there is any."""
        self.chosen = choose_run_folder(self.base, self.code, self.reuse)
        self.folder = self.chosen.folder
        self.files = RunFolder(self.folder)
        self.checkpoints = self.files.checkpoints

    def check(self) -> None:
        """Find out early that the output folder cannot be had."""
        with self.writing("create the run folder"):
            self.out.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def opened(self, fresh: bool = False) -> Iterator[RunStore]:
        """Create the folder, keep other processes out of it, and write the config."""
        with self._locked():
            with self.writing("write the config"):
                if fresh:
                    self._clear()
                self.checkpoints.mkdir(exist_ok=True)
                is_new = not self.files.has_config()
                if is_new:
                    write_text(self.folder / file_names.CONFIG, format_config(self.config))
            if not is_new:
                self._check_config()
            yield self

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the run's folder; another one, if other code has begun there since it was chosen."""
        while True:
            self.choose_folder()
            with self.writing("create the run folder"):
                self.folder.mkdir(parents=True, exist_ok=True)
                lock = self.files.lock.open("w")
            with lock:
                take_lock(lock, self.folder)
                chosen = self.folder
                self.choose_folder()
                if self.folder == chosen:
                    yield
                    return

    def _clear(self) -> None:
        """Remove what the run left, for --fresh."""
        for name in file_names.FILES:
            (self.folder / name).unlink(missing_ok=True)
        folders = [file_names.CHECKPOINTS, file_names.NETWORKS, file_names.FIGURES, file_names.LOGS]
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
            raise StoreError(f"{error}{START_OVER}") from None

    def check_records(self) -> None:
        """Refuse an unfinished run that cannot be gone on with, since one of its files is damaged."""
        self.rounds()
        self.timing()
        self.manifest()
        if self.files.has_config():
            self._check_config()

    def _check_config(self) -> None:
        """Refuse a folder whose config is damaged or another run's: nobody could tell later what the run was."""
        with self.reading():
            try:
                found = self.files.run_config().hash()
            except UsageError as error:
                raise StoreError(f"{error}{START_OVER}") from None
        if found != self.config.hash():
            file = self.folder / file_names.CONFIG
            raise StoreError(f"{file} is another run's (hash {found[:8]}, not {self.config.hash()[:8]}){START_OVER}")

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

    def remove_surplus(self, keep: str) -> None:
        """Remove what a finished run does not need: its checkpoints and, if none are to be kept, its networks."""
        with self.writing("remove what is not kept"):
            remove_folder(self.checkpoints)
            if keep == NONE:
                remove_folder(self.files.networks)

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
                f"each{START_OVER}"
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


def format_config(config: RunConfig) -> str:
    """Return a config as the text of a config.yaml."""
    return f"format: {FORMAT}\n{config.dump()}"


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def _identity(row: TimingRow) -> tuple[str | None, int, bool]:
    """Return the key of a timing row (session, round, unfinished): a round can be cut off in several sessions."""
    return row.get("session"), row["round"], row.get("unfinished", False)
