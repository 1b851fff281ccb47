"""Files that say only what differs from another one of their kind: presets and scenarios with `extends`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .errors import UsageError, short_repr
from .schema import locate

EXTENDS = "extends"
ENDINGS = (".yml", ".yaml")  # what ends so is a file, all else a name


def list_ancestry(
    given: str,
    where: str,
    kind: str,
    find: Callable[[str, str], Path],
    load: Callable[[Path], tuple[dict, dict[str, str]]],
) -> list[Path]:
    """Return the file that a name or path stands for and those it extends, the nearest first.

    Args:
        given: The name or path.
        where: The flag or line that gives it, for messages.
        kind: What the files are, in one word.
        find: Gives the file of a name or path, or refuses it with the line or flag it is told.
        load: Reads one file.

    Raises:
        UsageError: One of them does not exist, or they extend each other in a circle.
    """
    chain: list[Path] = []
    while True:
        file = find(given, where)
        if file.resolve() in [earlier.resolve() for earlier in chain]:
            circle = " → ".join(str(link) for link in (*chain, file))
            raise UsageError(f"{where}: {kind}s extend each other in a circle: {circle}")
        chain.append(file)
        tree, origins = load(file)
        if EXTENDS not in tree:
            return chain
        where = f"{locate(EXTENDS, origins)}: {EXTENDS}"
        if not isinstance(tree[EXTENDS], str) or not tree[EXTENDS]:
            raise UsageError(f"{where}: expected a {kind}'s name or file, got {short_repr(tree[EXTENDS])}")
        given = tree[EXTENDS]
        if given.endswith(ENDINGS):
            given = str(file.parent / given)  # beside the file that names it


def merge(tree: dict[str, Any], own: Mapping[str, Any], origins: dict[str, str], path: str = "") -> None:
    """Put the values of `own` into `tree`: mappings are merged key by key, all else replaces what was there."""
    for key, value in own.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            merge(tree[key], value, origins, here)
            continue
        for stale in [place for place in origins if place.startswith(f"{here}.")]:
            del origins[stale]
        tree[key] = value
