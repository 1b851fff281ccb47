"""Read a public config key by key: wrong types are errors with a line, keys that nobody read become notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import UsageError, nearest, short_repr
from ..base.schema import locate

KINDS = {
    "a whole number": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "a number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and -math.inf < v < math.inf,
    "true or false": lambda v: isinstance(v, bool),
    "text": lambda v: isinstance(v, str),
    "a mapping": lambda v: isinstance(v, dict),
    "a list": lambda v: isinstance(v, list),
}


@dataclass
class Notes:
    """What all readers of a file noted."""

    unmapped: list[str] = field(default_factory=list)  # keys without a counterpart, and why
    remarks: list[str] = field(default_factory=list)  # choices the file leaves open


class Reader:
    """One mapping at `path` of the file."""

    def __init__(self, data: Any, origins: Mapping[str, str], path: str = "", notes: Notes | None = None) -> None:
        self.origins, self.path, self.notes = origins, path, notes or Notes()
        if not isinstance(data, dict):
            raise UsageError(f"{self.where()}: expected a mapping, got {short_repr(data)}")
        self.data, self._read = data, set()

    def get(self, key: str, kind: str, default: Any = None, low: float | None = None, high: float | None = None) -> Any:
        """Return the value of `key`, of the right kind and within bounds; `default` where the file lacks it."""
        self._read.add(key)
        if key not in self.data:
            return default
        value = self.data[key]
        if not KINDS[kind](value):
            raise UsageError(f"{self.where(key)}: expected {kind}, got {short_repr(value)}")
        if (low is not None and value < low) or (high is not None and value > high):
            bound = f"at least {low:g}" if low is not None and value < low else f"at most {high:g}"
            raise UsageError(f"{self.where(key)}: expected {bound}, got {value!r}")
        return value

    def need(self, key: str, kind: str, **bounds: float) -> Any:
        """Return the value of `key` as `get` does; refuse a file that lacks it."""
        if key not in self.data:
            raise UsageError(f"{self.where()}: missing key {key!r}")
        return self.get(key, kind, **bounds)

    def inner(self, key: str) -> Reader:
        """Return a reader of the mapping below `key`, empty where the file lacks it."""
        return Reader(self.get(key, "a mapping", {}), self.origins, self._join(key), self.notes)

    def entries(self, key: str) -> list[Reader]:
        """Return a reader for each mapping in the list below `key`."""
        listed = self.get(key, "a list", [])
        return [Reader(one, self.origins, f"{self._join(key)}.{i}", self.notes) for i, one in enumerate(listed)]

    def note(self, key: str, why: str) -> None:
        """Note that `key` has no counterpart, and why."""
        self._read.add(key)
        self.notes.unmapped.append(f"{self.where(key)}: {why}")

    def note_if_there(self, keys: Mapping[str, str]) -> None:
        """Note each of `keys` that the file has; the values say why it has no counterpart."""
        for key, why in keys.items():
            if key in self.data:
                self.note(key, why)

    def finish(self, known: Iterable[str] = ()) -> None:
        """Note every key that was not read as unknown; `known` adds names to suggest."""
        names = {*self._read, *known}
        for key in [key for key in self.data if key not in self._read]:
            self.note(key, f"unknown key; {nearest(str(key), names)}")

    def where(self, key: str = "") -> str:
        """Return where a key stands: `file.yml:12: key`."""
        path = self._join(key) if key else self.path
        place = locate(path, self.origins)
        folder, _, name = place.rpartition("/")
        return ": ".join(part for part in (name if folder else place, path) if part)

    def _join(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else str(key)


def check_is_yaml(path: Path) -> None:
    """Refuse a file whose name is not that of a YAML file."""
    if path.suffix.lower() not in (".yml", ".yaml"):
        raise UsageError(f"{path}: expected a .yml or .yaml file")
