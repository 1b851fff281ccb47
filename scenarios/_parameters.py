"""Parameters of a scenario: declared in its file, set by `--set scenario.<name>=…`, put where `$name` stands.

A file declares `parameters: {clients: {default: 4, low: 1, high: 1000, doc: …}}` and writes `count: $clients`. What a
run keeps is plain: the numbers in their places, and `parameters: {clients: 4}` to say where they came from.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..base.errors import UnknownNameError, UsageError, nearest, short_repr
from ..base.located import Tree, locate, look_up
from ..base.schema import build
from ._schema import Scenario

FIELDS = ("clients", "partition")  # where a parameter may stand
# Fields of a scenario that take no number: if one is given, the schema says what is wrong.
NOT_NUMBERED = tuple(f.name for f in dataclasses.fields(Scenario) if f.name != "clients")


@dataclass(frozen=True)
class Declaration:
    """One parameter as its file declares it; whole if the default is a whole number."""

    default: Any
    low: float | None = None
    high: float | None = None
    doc: str = ""


class Parameters:
    """The declarations of one scenario tree and the values given to them.

    Args:
        scenario: the scenario's name, for messages.
        tree: the scenario as read from its file; its `parameters` are taken out.
        path: where the scenario lies in what is built: "" or "scenario".
    """

    def __init__(self, scenario: str, tree: Tree, path: str = "") -> None:
        self._scenario, self._said = scenario, tree
        declared = tree.get("parameters") or {}
        if not isinstance(declared, dict):
            raise self._complain("parameters", f"expected a mapping of names, got {short_repr(declared)}")
        self.declared: dict[str, Declaration] = {}
        self._given: dict[str, tuple[Any, str]] = {}
        for name in declared:
            field = f"parameters.{name}"
            if not isinstance(name, str) or not name.isidentifier():
                raise self._complain(field, f"{name!r} is not a name; letters, digits and _ only")
            declaration = build(Declaration, look_up(tree, field), f"{path}.{field}" if path else field)
            if not _is_number(declaration.default):
                raise self._complain(f"{field}.default", f"expected a number, got {short_repr(declaration.default)}")
            self.declared[name] = declaration
            self._check(name, declaration.default, locate(self._said, f"{field}.default"))
        used = set()
        for _, _, field, name in self._find_places(tree):
            used.add(self._check_declared(name, field))
        for name in self.declared:
            if name not in used:
                raise self._complain(f"parameters.{name}", f"nothing uses it; write ${name} where it belongs")
        tree.pop("parameters", None)

    def take(self, key: str, value: Any, flag: str) -> bool:
        """Return whether the override `key=value` is for a parameter; if so, keep its value until `fill`."""
        section, _, name = key.partition(".")
        if section != "scenario":
            return False
        if name.split(".")[0] == "parameters":
            raise UsageError(f"{flag}: a parameter is set by its own name; {self._names()}")
        if isinstance(value, (list, dict)):
            return False
        if name in self.declared:
            self._given[name] = (self._check(name, value, flag), flag)
            return True
        if _is_number(value) and "." not in name and name not in NOT_NUMBERED:
            raise UnknownNameError(f"{flag}: {self._scenario} has no parameter {name!r}; {self._names(name)}")
        return False

    def fill(self, tree: dict) -> None:
        """Put the values where the names stand; `tree["parameters"]` says which were used."""
        used = {}
        for node, key, field, name in list(self._find_places(tree)):
            value, flag = self._given.get(self._check_declared(name, field), (self.declared[name].default, ""))
            used[name] = value
            node.put(key, value, flag or locate(node, str(key)))
        for name, (_, flag) in self._given.items():
            if name not in used:
                raise UsageError(f"{flag}: nothing uses {name!r} any more; another --set replaced it")
        tree["parameters"] = {name: used[name] for name in self.declared if name in used}

    def _check_declared(self, name: str, field: str) -> str:
        if name not in self.declared:
            raise self._complain(field, f"no parameter {name!r}; {self._names(name)}", UnknownNameError)
        return name

    def _check(self, name: str, value: Any, where: str) -> int | float:
        declaration = self.declared[name]
        whole = isinstance(declaration.default, numbers.Integral)
        if not _is_number(value) or (whole and not isinstance(value, numbers.Integral)):
            raise UsageError(f"{where}: {name}: expected {'a whole' if whole else 'a'} number, got {short_repr(value)}")
        low, high = declaration.low, declaration.high
        if (low is not None and value < low) or (high is not None and value > high):
            wanted = " and ".join(f"at {word} {n:g}" for word, n in (("least", low), ("most", high)) if n is not None)
            raise UsageError(f"{where}: {name}: expected {wanted}, got {short_repr(value)}")
        return int(value) if whole else float(value)

    def _find_places(self, tree: dict) -> Iterator[tuple[Any, Any, str, str]]:
        """Yield (parent, key, dotted field, name) of every `$name`."""
        for field in FIELDS:
            yield from _find(tree, field, field) if field in tree else ()

    def _names(self, near: str = "") -> str:
        if not self.declared:
            return f"{self._scenario} declares no parameters"
        listing = ", ".join(f"scenario.{name} ({self.declared[name].default})" for name in sorted(self.declared))
        close = nearest(near, self.declared) if near else ""
        return f"{close} declared: {listing}" if close.startswith("did") else f"declared: {listing}"

    def _complain(self, field: str, message: str, kind: type[UsageError] = UsageError) -> UsageError:
        return kind(f"{locate(self._said, field)}: {field}: {message}")


def _find(parent: Any, key: Any, field: str) -> Iterator[tuple[Any, Any, str, str]]:
    node = parent[key]
    if isinstance(node, str) and node.startswith("$"):
        yield parent, key, field, node[1:]
    elif isinstance(node, dict):
        for inner in node:
            yield from _find(node, inner, f"{field}.{inner}")
    elif isinstance(node, list):
        for index in range(len(node)):
            yield from _find(node, index, f"{field}.{index}")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and -math.inf < value < math.inf
