"""Where the normals of PASCAL-Context count: known here alone, for training and for scoring."""

from __future__ import annotations

from collections.abc import Mapping

SCREEN = "tvmonitor"  # what NYUD-v2 calls television


def trusted_classes(nyud: Mapping[str, int], context: Mapping[str, int]) -> list[int]:
    """Numbers of the context classes that rooms have too, given both datasets' classes by name.

    The normals were distilled from a network that knows rooms. "unknown" is not a thing that could be the same in
    both. KeyError if these are not the names of the context classes.
    """
    return sorted({context[name] for name in context if name in nyud and name != "unknown"} | {context[SCREEN]})
