"""What each value of a config is there for, as its field says, read from the records once.

Most values decide numbers: a field that says nothing of its role is one of them. `neutral` values decide none. `own`
are the method, the weighting that it is combined with, and the seed: what runs of one table may differ in.
`incidental` values decide numbers, or what is written of them, but no paper states them.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..base.schema import MISSING


@dataclass(frozen=True)
class Moved:
    """Where a value was when the first runs were made, and what stood there in configs that have no such value now."""

    first: str
    otherwise: Any
    by_preset: Mapping[str, Any]  # where a preset said something else


@dataclass(frozen=True)
class Roles:
    """Paths of a config by their role; each stands for everything below it."""

    neutral: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    incidental: tuple[str, ...] = ()
    # Values that were added after runs had been made: at these defaults a config keeps the hash that it had before.
    since: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # Path now → where it was. Hashes and settings keep the first place, so that old and new runs agree.
    moved: Mapping[str, Moved] = dataclasses.field(default_factory=dict)

    @property
    def now(self) -> dict[str, str]:
        """The present path of a value, by its first one."""
        return {moved.first: path for path, moved in self.moved.items()}


@cache
def roles() -> Roles:
    """Return the roles of all values of a run's config."""
    from .run_config import RunConfig  # here: who asks nothing of a setting starts without it

    return read_roles(RunConfig)


def read_roles(record: type, prefix: str = "") -> Roles:
    """Read the roles that the fields of a dataclass, and of those in it, say."""
    found: dict[str, list[str]] = {"neutral": [], "own": [], "incidental": []}
    since: dict[str, Any] = {}
    moved: dict[str, Moved] = {}
    hints = typing.get_type_hints(record)
    for field in dataclasses.fields(record):
        path = f"{prefix}{field.name}"
        if role := field.metadata.get("role"):
            found[role].append(path)
        if (former := field.metadata.get("since", MISSING)) is not MISSING:
            since[path] = former
        moved |= {f"{path}.{name}": place for name, place in field.metadata.get("moved", {}).items()}
        if dataclasses.is_dataclass(hints[field.name]):
            below = read_roles(hints[field.name], f"{path}.")
            for name, paths in found.items():
                paths += getattr(below, name)
            since |= below.since
            moved |= below.moved
    return Roles(**{name: tuple(paths) for name, paths in found.items()}, since=since, moved=moved)
