"""Checkpoints: a folder per round with safetensors files and a JSON index that holds their checksums.

A folder is filled under another name and renamed when complete, so a kill at any moment leaves the old one or the new
one. The previous round's stays until the one after it is complete: a damaged newest folder costs a round, not a run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save

from ..base.errors import FmtlbenchError
from ..base.files import replace_folder, sha256_file, write_json
from ..base.stored import FIRST_FORMAT, FORMAT, DamagedRun, NewerFormat, check_format
from ..runs.kept import available
from .state_trees import join_tree, split_tree

KEEP = 2


class DamagedCheckpoint(FmtlbenchError):
    """A checkpoint folder whose bytes are not those that were written."""


def save_checkpoint(folder: Path, done: int, write: Callable[[Path], dict[str, Any]]) -> None:
    """Have `write` fill a folder with states after `done` complete rounds, then drop all but the newest `KEEP`.

    `write` gets the folder and returns what `write_state` returned, by the states' names.
    """
    final = folder / f"round-{done:05d}"
    with replace_folder(final, alone=True) as partial:  # the run is locked: nobody else saves here
        write_json(partial / "index.json", {"format": FORMAT, "rounds": done, "states": write(partial)})
    for old in available(folder)[:-KEEP]:
        shutil.rmtree(folder / f"round-{old:05d}", ignore_errors=True)


def state_file(place: Path, name: str) -> Path:
    """Return where a checkpoint in `place` keeps the state of this name."""
    return place / f"{name}.safetensors"


def write_state(file: Path, tree: Any) -> dict[str, Any]:
    """Write a state; return what the index says of it."""
    tensors, skeleton = split_tree(tree)
    save_file(tensors, file)
    return {"sha256": sha256_file(file), "tree": skeleton}


def read_state(file: str | Path, skeleton: Any) -> Any:
    """Read back what `write_state` wrote."""
    return join_tree(load_file(file), skeleton)


def save_file(tensors: dict[str, Any], file: Path) -> None:
    """Write through Python's own files: safetensors would hide a full disk behind an error of its own."""
    with file.open("wb") as stream:
        stream.write(save(tensors))
        stream.flush()
        os.fsync(stream.fileno())


class Checkpoint:
    """A complete checkpoint on disk. Its states are read one at a time: all at once may be more than fits.

    Raises:
        DamagedCheckpoint: It is not as it was written.
    """

    def __init__(self, folder: Path, done: int) -> None:
        self.place, self.done = folder / f"round-{done:05d}", done
        with self._damage_named():
            index = json.loads((self.place / "index.json").read_text(encoding="utf-8"))
            check_format(self.place, "index.json", index.get("format", FIRST_FORMAT))
            self._states = {name: (entry["sha256"], entry["tree"]) for name, entry in index["states"].items()}

    def check(self, name: str) -> None:
        """Raise DamagedCheckpoint if any byte of a state differs from what was written."""
        with self._damage_named():
            if sha256_file(self.file(name)) != self._states[name][0]:
                raise DamagedCheckpoint(f"{self.file(name)} is not as it was written (checksum differs)")

    def check_all(self) -> None:
        """Check every state."""
        for name in self._states:
            self.check(name)

    def file(self, name: str) -> Path:
        """Return where a state lies."""
        return state_file(self.place, name)

    def skeleton(self, name: str) -> Any:
        """Return what `read_state` needs beside the file."""
        return self._states[name][1]

    def read(self, name: str) -> Any:
        """Return a state, checked."""
        self.check(name)
        with self._damage_named():
            return read_state(self.file(name), self.skeleton(name))

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except (NewerFormat, DamagedCheckpoint):
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, DamagedRun) as error:
            raise DamagedCheckpoint(f"{self.place} cannot be read: {error}") from None
