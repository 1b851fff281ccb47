"""Check names that become folders and files: of clients, methods, scenarios, presets and metrics; find named files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .errors import UsageError, short_repr

LONGEST = 100  # bytes; file systems take 255, and we put something before and after


def check_name(name: Any, kind: str, where: str = "") -> str:
    """Return `name` if it can be one path component and one word of a table, else raise a UsageError.

    Args:
        name: what a file, a class or an entry point says.
        kind: of what, for messages: "client", "method".
        where: the file and line, or the flag, it stands in.
    """
    if problem := _find_problem(name):
        raise UsageError(
            f"{where + ': ' if where else ''}{short_repr(name)} cannot be the name of a {kind}: {problem}; "
            "expected letters, digits and the like, as in my-name_2"
        )
    return name


def name_files(folder: Path, kind: str) -> tuple[dict[str, Path], list[UsageError]]:
    """Return the YAML files of a folder by their names, and why others are left out; hidden ones are not looked at."""
    found: dict[str, Path] = {}
    problems = []
    for file in sorted(folder.glob("[!.]*.yml")):
        try:
            found[check_name(file.stem, kind, str(folder))] = file
        except UsageError as error:
            problems.append(error)
    return found, problems


def public_modules(package_path: Iterable[str], order: Sequence[str] = ()) -> dict[str, Path]:
    """Return the files of a package's public modules, by their names: those of `order` first, then the others."""
    files = {file.stem: file for folder in package_path for file in sorted(Path(folder).glob("[a-z]*.py"))}
    return {name: files[name] for name in (*(n for n in order if n in files), *sorted(files.keys() - {*order}))}


def _find_problem(name: Any) -> str | None:
    if not isinstance(name, str):
        return f"it is a {type(name).__name__}, not text"
    if not name.strip():
        return "it is empty"
    if not name.isprintable():
        return "it holds a control character"
    if "/" in name or "\\" in name:
        return "it holds a slash"
    if name.startswith("."):
        return "it begins with a dot"
    if name != name.strip():
        return "it begins or ends with a blank"
    if len(name.encode()) > LONGEST:
        return f"it is longer than {LONGEST} bytes"
    return None
