"""Code that a user gives as a file: what identifies it, and whether its class is what it should be."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import UsageError
from .files import sha256_file
from .names import check_name
from .schema import limits
from .user_files import helper_files


@dataclass(frozen=True)
class UserCode:
    """A user's file. All is empty for what comes with the package or is installed."""

    source: str | None = limits(None, since=None)  # sha256 of the file
    # Path from the file's folder → sha256, of the modules beside it that it imports.
    helpers: dict[str, str] = limits(dict, since={})
    file: str | None = limits(None, role="neutral")  # where it lies

    @property
    def content(self) -> str:
        """One sha256 for the file and its helpers: that of the file itself where there are none."""
        if not self.helpers:
            return str(self.source)
        return hashlib.sha256(json.dumps([self.source, self.helpers], sort_keys=True).encode()).hexdigest()

    def is_missing(self) -> bool:
        """Return whether there is no file any more where it should be."""
        return self.file is not None and not Path(self.file).is_file()

    def is_unchanged(self) -> bool:
        """Return whether file and helpers have the content that they had."""
        if self.file is None:
            return True
        path = Path(self.file).resolve()
        expected = {path: self.source} | {path.parent / name: sha256 for name, sha256 in self.helpers.items()}
        return all(file.is_file() and sha256_file(file) == sha256 for file, sha256 in expected.items())


def read_user_code(name: str) -> UserCode:
    """Identify what a registry has resolved `name` to."""
    if not name.endswith(".py"):
        return UserCode()
    folder = Path(name).resolve().parent
    helpers = {file.relative_to(folder).as_posix(): sha256_file(file) for file in helper_files(Path(name))}
    return UserCode(sha256_file(Path(name)), helpers, name)


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


def check_class(found: Any, base: type, kind: str, texts: tuple[str, ...], where: str) -> type:
    """Return a class that a registry gave, if it is one of `base` with `texts` of its own and a dataclass of options.

    Args:
        found: What was registered.
        base: The class that it must be derived from.
        kind: Of what, for messages: "method".
        texts: Attributes that label its rows, which its parent's must not do.
        where: The flag, or the file and line, that it was asked for in.
    """
    if not (isinstance(found, type) and issubclass(found, base)):
        public = f"{base.__module__.partition('._')[0]}.{base.__name__}"
        raise UsageError(f"{where}: {found.__qualname__} is not a subclass of {public}")
    check_name(found.name, kind, f"{where}: {found.__qualname__}.name")  # it may have been changed after registering
    for name in texts:
        if name not in vars(found):
            raise UsageError(f'{where}: {found.__qualname__} has no {name} of its own; add {name} = "…" to the class')
        if not isinstance(getattr(found, name), str):
            raise UsageError(f"{where}: {found.__qualname__}.{name}: expected text, got {getattr(found, name)!r:.80}")
    if not dataclasses.is_dataclass(found.Params):
        raise UsageError(f"{where}: {found.__qualname__}.Params is not a dataclass; add @dataclass(frozen=True)")
    return found
