"""Checkpoints: a folder per round with safetensors files and a JSON index that holds their checksums.

A folder is filled under another name and renamed when complete, so a kill at any moment leaves the old one or the new
one. The previous round's stays until the one after it is complete: a damaged newest folder costs a round, not a run.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save

from ..errors import FmtlbenchError
from ..files import sha256_file, sync_folder, write_json
from ..runs.folder import DamagedRun, NewerFormat, check_format
from ..runs.records import FIRST_FORMAT, FORMAT
from .trees import join_tree, split_tree

KEEP = 2


class DamagedCheckpoint(FmtlbenchError):
    """A checkpoint folder whose bytes are not those that were written."""


def save_checkpoint(folder: Path, done: int, states: dict[str, Any]) -> None:
    """Save `states` (name → tree) after `done` complete rounds, then drop all but the newest `KEEP`."""
    final = folder / f"round-{done:05d}"
    partial = folder / f".{final.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    index: dict[str, Any] = {"format": FORMAT, "rounds": done, "states": {}}
    try:
        for name, tree in states.items():
            tensors, skeleton = split_tree(tree)
            file = partial / f"{name}.safetensors"
            save_file(tensors, file)
            index["states"][name] = {"sha256": sha256_file(file), "tree": skeleton}
        write_json(partial / "index.json", index)
        sync_folder(partial)
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        sync_folder(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    for old in available(folder)[:-KEEP]:
        shutil.rmtree(folder / f"round-{old:05d}", ignore_errors=True)


def save_file(tensors: dict[str, Any], file: Path) -> None:
    """Write through Python's own files: safetensors would hide a full disk behind an error of its own."""
    with file.open("wb") as stream:
        stream.write(save(tensors))
        stream.flush()
        os.fsync(stream.fileno())


def available(folder: Path) -> list[int]:
    """Numbers of complete rounds that a checkpoint exists for, oldest first; damaged ones included."""
    return sorted(int(path.name[6:]) for path in folder.glob("round-*") if path.name[6:].isdigit())


def load_checkpoint(folder: Path, done: int, only: str | None = None) -> dict[str, Any]:
    """The states saved after `done` rounds; raises DamagedCheckpoint if any byte differs from what was written.

    `only` names a single state to load, where all at once would need too much memory.
    """
    place = folder / f"round-{done:05d}"
    try:
        index = json.loads((place / "index.json").read_text(encoding="utf-8"))
        check_format(place, "index.json", index.get("format", FIRST_FORMAT))
        states = {}
        for name in index["states"] if only is None else [only]:
            entry, file = index["states"][name], place / f"{name}.safetensors"
            if sha256_file(file) != entry["sha256"]:
                raise DamagedCheckpoint(f"{file} is not as it was written (checksum differs)")
            states[name] = join_tree(load_file(file), entry["tree"])
        return states
    except NewerFormat:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DamagedRun) as error:
        raise DamagedCheckpoint(f"{place} cannot be read: {error}") from None
