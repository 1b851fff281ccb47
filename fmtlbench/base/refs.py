"""Something that a config names, and the user's file that brings it, if one does: known again by its content."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .files import sha256_file
from .schema import limits
from .user_files import helper_files


@dataclass(frozen=True)
class UserCode:
    """What a config writes of a user's file. All is empty for what comes with the package or is installed."""

    source: str | None = limits(None, since=None)  # sha256 of the file
    # Path from the file's folder → sha256, of the modules beside it that it imports.
    helpers: dict[str, str] = limits(dict, since={})
    file: str | None = limits(None, role="neutral")  # where it lies


@dataclass(frozen=True)
class Ref:
    """A method, network, task, dataset, metric, partition or weighting: its name, and the user's file that brings it.

    Args:
        kind: As its registry calls it: "algorithm", "architecture", …
        name: What it is registered as.
        path: Of the user's file; None for what comes with the package or is installed.
        sha256: Of that file, or of it with its helpers where they are not listed.
        helpers: Path from the file's folder → sha256, of the modules beside it that it imports.
    """

    kind: str
    name: str
    path: str | None = None
    sha256: str | None = None
    helpers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def code(self) -> UserCode:
        """What a config writes of the file."""
        return UserCode(self.sha256, self.helpers, self.path)

    @property
    def content(self) -> str:
        """One sha256 for the file and its helpers: that of the file itself where there are none."""
        if not self.helpers:
            return str(self.sha256)
        return hashlib.sha256(json.dumps([self.sha256, self.helpers], sort_keys=True).encode()).hexdigest()

    @property
    def files(self) -> dict[Path, str | None]:
        """The user's file and its helpers, with the sha256 of each; nothing for what no user's file brings."""
        if self.path is None:
            return {}
        path = Path(self.path).resolve()
        return {path: self.sha256} | {path.parent / name: sha256 for name, sha256 in self.helpers.items()}

    def is_missing(self) -> bool:
        """Return whether there is no file any more where it should be."""
        return self.path is not None and not Path(self.path).is_file()

    def is_unchanged(self) -> bool:
        """Return whether file and helpers have the content that they had."""
        return all(file.is_file() and sha256_file(file) == sha256 for file, sha256 in self.files.items())


def identify_file(kind: str, name: str, path: str) -> Ref:
    """Return the reference to what a user's file, executed before, brings as `name`."""
    folder = Path(path).resolve().parent
    helpers = {file.relative_to(folder).as_posix(): sha256_file(file) for file in helper_files(Path(path))}
    return Ref(kind, name, path, sha256_file(Path(path)), helpers)


def identify_source(item: Any) -> str | None:
    """Return the sha256 of the file that a class or function is written in; None for what comes with this package.

    Caches that hold what such code gave go by it: the package's own code has version numbers instead.
    """
    if str(getattr(item, "__module__", "")).startswith("fmtlbench."):
        return None
    try:
        file = inspect.getsourcefile(item)
    except TypeError:
        file = None
    return sha256_file(Path(file)) if file and Path(file).is_file() else repr(item)
