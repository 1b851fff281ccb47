"""`fmtlbench runs rm`: remove runs for good. Never imports torch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .runs import add_run


def add(actions) -> None:
    parser = actions.add_parser("rm", help="remove runs for good, with everything in their folders")
    add_run(parser, "runs", nargs="+")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.errors import UsageError
    from ..base.words import say_bytes, say_count
    from ..runs.find import find_run
    from ..runs.kept import size_on_disk
    from ..runs.lock import check_removable, remove_run

    folders = list(dict.fromkeys(_check_link(find_run(name, whole_words=True)) for name in args.runs))
    for folder in folders:
        check_removable(folder)
    size = say_bytes(sum(map(size_on_disk, folders)))
    if not args.yes:
        if not sys.stdin.isatty():
            raise UsageError(f"rm: nobody can be asked here; --yes removes {say_count(len(folders), 'run')}, {size}")
        print("\n".join(map(str, folders)))
        if not _agrees(f"Remove {say_count(len(folders), 'run')}, {size}? [y/N] "):
            print("nothing removed")
            return 1
    for folder in folders:
        remove_run(folder)
        print(f"removed: {folder}")
    return 0


def _agrees(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        print()
        return False


def _check_link(folder: Path) -> Path:
    from ..base.errors import UsageError

    if folder.is_symlink():
        raise UsageError(
            f"{folder}: a link to {folder.readlink()}, expected a run's own folder; links are not followed"
        )
    return folder
