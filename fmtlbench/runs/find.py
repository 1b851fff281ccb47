"""Find run folders, and the files that stand for absent ones, at any depth."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..base.errors import UsageError, unknown
from .file_names import ABSENT, COST, is_run

SHORTEST = 4  # characters of a part of a name that names a run


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


def find_run(text: str, root: str | Path = "runs", whole_words: bool = False) -> Path:
    """Return the folder of the run that is meant: by its path, or by a name below `root`, or enough of one.

    A whole name goes first, then the end of one after a -, whole folders of one, and any part of at least four
    characters; what is taken must fit one run only. With `whole_words`, a mere part does not do.

    Raises:
        UsageError: There is none, or more than one.
    """
    path = Path(text)
    if path.is_dir():
        if is_run([entry.name for entry in path.iterdir()]):
            return path
        raise UsageError(f"{text}: no run in it{runs_below(path)}")
    below = locate_runs([root])[0] if Path(root).is_dir() else []
    names = {name: folder for folder, name in below}
    wanted = text.strip("/").removeprefix(f"{root}/")
    meant = [name for name in names if name == wanted] or [name for name in names if name.endswith(f"-{wanted}")]
    meant = meant or [name for name in names if wanted and f"/{wanted}/" in f"/{name}/"]
    if not meant and not whole_words and len(wanted) >= SHORTEST:
        meant = [name for name in names if wanted in name]
    if len(meant) == 1:
        return names[meant[0]]
    if not meant:
        part = "whole words" if whole_words else "a part"
        raise unknown("run", text, names, f"neither a folder nor {part} of a name below {root}")
    more = f" and {len(meant) - 5} more" if len(meant) > 5 else ""
    raise UsageError(f"{text}: {len(meant)} runs have that in their name: {', '.join(meant[:5])}{more}")


def runs_below(folder: Path) -> str:
    """Say which runs lie below a folder, as the end of a message; "" if none do."""
    try:
        found = [run for run, _ in locate_runs([folder])[0]]
    except UsageError:  # no such folder, or none below it
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"; runs below it: {', '.join(map(str, found[:3]))}{more}" if found else ""


def newest_finished(folders: Iterable[Path], most: int) -> list[Path]:
    """List up to `most` of the folders, those whose runs came to their end last."""
    ended = {folder: file.stat().st_mtime for folder in folders if (file := folder / COST).exists()}
    return sorted(ended, key=ended.__getitem__)[-most:]
