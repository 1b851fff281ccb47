"""Files that say only what differs from another one of their kind: presets and scenarios with `extends`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .errors import UsageError, short_repr
from .located import Tree, locate

EXTENDS = "extends"
ENDINGS = (".yml", ".yaml")  # what ends so is a file, all else a name


def read_ancestry(
    given: str,
    where: str,
    kind: str,
    find: Callable[[str, str], Path],
    load: Callable[[Path], Tree],
) -> list[tuple[Path, Tree]]:
    """Return the file that a name or path stands for and those it extends, the nearest first, with what they say.

    Args:
        given: The name or path.
        where: The flag or line that gives it, for messages.
        kind: What the files are, in one word.
        find: Gives the file of a name or path, or refuses it with the line or flag it is told.
        load: Reads one file.

    Raises:
        UsageError: One of them does not exist, or they extend each other in a circle.
    """
    chain: list[tuple[Path, Tree]] = []
    while True:
        file = find(given, where)
        if file.resolve() in [earlier.resolve() for earlier, _ in chain]:
            circle = " → ".join(map(str, (*(earlier for earlier, _ in chain), file)))
            raise UsageError(f"{where}: {kind}s extend each other in a circle: {circle}")
        tree = load(file)
        chain.append((file, tree))
        if EXTENDS not in tree:
            return chain
        where, given = f"{locate(tree, EXTENDS)}: {EXTENDS}", tree.pop(EXTENDS)
        if not isinstance(given, str) or not given:
            raise UsageError(f"{where}: expected a {kind}'s name or file, got {short_repr(given)}")
        if given.endswith(ENDINGS):
            given = str(file.parent / given)  # beside the file that names it
