"""Find run folders, and the files that stand for absent ones, at any depth."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import UsageError
from .file_names import ABSENT, COST, is_run


def locate_runs(paths: Iterable[str | Path]) -> tuple[list[tuple[Path, str]], list[Path]]:
    """Find runs as (folder, name relative to the path it was found under), and files of absent ones; both sorted.

    A name found twice gets its root.
    """
    found: dict[str, tuple[str, str]] = {}
    names: dict[str, str] = {}
    absent: dict[str, str] = {}
    for root in map(Path, paths):
        if not root.is_dir():
            raise UsageError(f"{root}: {'not a folder' if root.exists() else 'no such folder'}; expected runs in it")
        real_root = str(root.resolve())  # the walk follows no links, so what lies below needs no resolving
        notes: list[str] = []
        below = list(_walk(str(root), notes))
        absent |= {f"{real_root}{file[len(str(root)) :]}": file for file in notes}
        if not below and not notes:
            raise UsageError(f"{root}: no run in it or below it; `fmtlbench run` keeps its runs in ./runs unless told")
        for folder in below:  # as text: thousands of path objects would cost as much as reading the summaries
            relative = folder[len(str(root)) :].lstrip(os.sep)
            real = f"{real_root}{os.sep}{relative}".rstrip(os.sep)
            if real in found:
                continue
            name = relative.replace(os.sep, "/") or real_root.rpartition(os.sep)[2]
            if names.setdefault(name, real) != real:
                name = folder.replace(os.sep, "/")
            found[real] = (folder, name)
    return [(Path(folder), name) for folder, name in sorted(found.values())], sorted(map(Path, absent.values()))


def _walk(root: str, absent: list[str]) -> Iterator[str]:
    """Yield the run folders below `root`; the files of absent runs are added to `absent`."""
    for here, folders, files in os.walk(root):
        if is_run(files):
            folders.clear()  # what a run keeps inside is its own
            yield here
        else:
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            absent += [f"{here}{os.sep}{f}" for f in files if f.endswith(ABSENT) and not f.startswith(".")]


def newest_finished(folders: Iterable[Path], most: int) -> list[Path]:
    """List up to `most` of the folders, those whose runs came to their end last."""
    ended = {folder: file.stat().st_mtime for folder in folders if (file := folder / COST).exists()}
    return sorted(ended, key=ended.__getitem__)[-most:]
