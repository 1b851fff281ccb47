"""The git commit that files were at, and whether they had been edited since. Without git, or a repository: nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

PATIENCE = 10.0  # seconds; a slow file system costs a run no more than that


def read_git_state(paths: Sequence[Path]) -> tuple[str | None, bool | None]:
    """Return the commit that files and folders are checked out at, and whether all in them is as committed there.

    (None, None) if they are in no repository, or in one that does not track them: an environment below somebody's own
    project, for example.
    """
    tracked = _ask_git(paths[0].parent, "ls-files", "--", *map(str, paths))
    commit = _ask_git(paths[0].parent, "rev-parse", "HEAD") if tracked else None
    if not commit:
        return None, None
    changed = _ask_git(paths[0].parent, "status", "--porcelain", "--", *map(str, paths))
    return commit, None if changed is None else changed == ""


def _ask_git(folder: Path, *words: str) -> str | None:
    """Return what a git command prints; None if it fails or there is no git."""
    # A hook of another repository sets GIT_DIR and the like, which would be asked instead of the folder's own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
