"""A run is a folder that can be resumed, and read without the code. The only writer below the output folder.

config.yaml and manifest.json come first, then metrics.jsonl (one line per round; numbers only, so the same config gives
the same bytes) and timing.jsonl (one line per round; what it took), the checkpoint folder, and summary.json, whose
existence means "finished".
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .config import RunConfig
from .errors import FmtlbenchError
from .files import write_json, write_text

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
        self.checkpoints = self.folder / "checkpoint"
        self._lock = None

    def check(self) -> None:
        """Find out early that the output folder cannot be had."""
        with self.writing("create the run folder"):
            self.out.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def opened(self, fresh: bool = False) -> Iterator[RunStore]:
        """Create the folder, keep other processes out of it, and write the config."""
        with self.writing("create the run folder"):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / ".lock").open("w")
        try:
            self._take_lock()
            with self.writing("write the config"):
                if fresh:
                    self._clear()
                self.checkpoints.mkdir(exist_ok=True)
                if not (self.folder / "config.yaml").exists():
                    write_text(self.folder / "config.yaml", self.config.dump())
            yield self
        finally:
            self._lock.close()

    def _take_lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"{self.folder}: another process is working on this run") from None

    def _clear(self) -> None:
        """--fresh: what the run left goes, summary first, so that no moment shows a finished run without its rows."""
        rows = ("metrics.jsonl", "timing.jsonl", "repeated.jsonl")
        for name in ("summary.json", "cost.json", *rows, "manifest.json", "config.yaml"):
            (self.folder / name).unlink(missing_ok=True)
        for path in [self.folder / "checkpoint", self.folder / "figures", *self.folder.glob("predictions*")]:
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

    # -- finished runs -----------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any] | None:
        """What a finished run says of itself, or None."""
        return read_json(self.folder / "summary.json")

    def write_summary(self, summary: dict[str, Any], cost: dict[str, Any]) -> None:
        with self.writing("write the summary"):
            write_json(self.folder / "cost.json", cost)
            write_json(self.folder / "summary.json", summary)

    # -- rows --------------------------------------------------------------------------------------------------------

    def append(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        """One line each to metrics.jsonl and timing.jsonl, on disk when this returns."""
        with self.writing("append a round"):
            for name, row in (("timing.jsonl", timing), ("metrics.jsonl", metrics)):
                with (self.folder / name).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, allow_nan=False) + "\n")
                    file.flush()
                    os.fsync(file.fileno())

    def rows(self, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
        """The complete lines of a file; a last line cut short by a kill is not one."""
        path = self.folder / name
        if not path.exists():
            return []
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise StoreError(f"{path} is damaged: {error}; --fresh starts the run over") from None

    def keep_rounds(self, done: int) -> None:
        """Forget rows of rounds after the first `done`: they will be made again, identically. What they took stays."""
        with self.writing("trim the rows"):
            sizes = {row["round"]: {key: row[key] for key in ("bytes_up", "bytes_down")} for row in self.rows()}
            lost = [row for row in self.rows("timing.jsonl") if row["round"] > done]
            self.set_aside([{**row, **sizes.get(row["round"], {})} for row in lost])
            for name in ("metrics.jsonl", "timing.jsonl"):
                kept = [row for row in self.rows(name) if row["round"] <= done]
                text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in kept)
                path = self.folder / name
                if path.exists() and path.read_text(encoding="utf-8") != text:
                    write_text(path, text)

    def set_aside(self, rows: list[dict[str, Any]]) -> None:
        """Keep the timing rows of rounds that are made again in repeated.jsonl, each once."""
        known = self.repeated()
        seen = {_identity(row) for row in known}
        new = [row for row in rows if _identity(row) not in seen]
        if new:
            text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in [*known, *new])
            write_text(self.folder / "repeated.jsonl", text)

    def repeated(self) -> list[dict[str, Any]]:
        """What was set aside; a damaged file is no reason to stop, it only says what was spent."""
        try:
            return self.rows("repeated.jsonl")
        except StoreError:
            return []

    # -- manifest ----------------------------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any] | None:
        return read_json(self.folder / "manifest.json")

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        with self.writing("write the manifest"):
            write_json(self.folder / "manifest.json", manifest)


def _identity(row: dict[str, Any]) -> tuple:
    """Of a timing row: a round can be cut off in several sessions, and after its row was written."""
    return row.get("session"), row["round"], row.get("unfinished", False)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON file's content; None if there is none; one line if it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}; --fresh starts the run over") from None
