"""Read YAML files as plain data with the line of every value, so that errors can name it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from .errors import UsageError, short_repr
from .located import Items, Lone, Tree, located

# What a file may hold: ours have some kilobytes, some hundred values, and are nested six deep.
MOST_BYTES = 256 * 1024
MOST_VALUES = 100_000  # counted as if every alias were written out: ten short lines can stand for 10^9 values
DEEPEST = 40
KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")  # of keys: text, and `<<`
LARGEST = 2**63  # of whole numbers: what arrays and files can count


def _make_error(problem: str, place: yaml.Event | yaml.Node) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads `1e-4` as a number, as people mean it (YAML 1.1 wants `1.0e-4`), and within limits."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0  # of the node that is being read
        self._reach = 0  # the greatest depth in what was read of its parent, aliases written out
        self._count = 0  # values so far, aliases written out
        self._measures: dict[int, tuple[int, int]] = {}  # of complete nodes by id: values, levels

    def compose_node(self, parent: yaml.Node, index: Any) -> yaml.Node:
        """Read one value and measure what it would be with its aliases written out."""
        event, before, outer = self.peek_event(), self._count, self._reach
        self._depth += 1
        self._reach = self._depth
        self._check_limit(self._reach, DEEPEST, "levels of nesting", event)
        node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._measures:
                raise _make_error("an alias inside its own anchor", event)
            values, levels = self._measures[id(node)]
            self._count += values
            self._reach += levels
        else:
            self._count += 1
            self._measures[id(node)] = self._count - before, self._reach - self._depth
        self._check_limit(self._reach, DEEPEST, "levels of nesting", event)
        self._check_limit(self._count, MOST_VALUES, "values, with its aliases written out", event)
        self._depth -= 1
        self._reach = max(outer, self._reach)
        return node

    def _check_limit(self, found: int, most: int, what: str, event: yaml.Event) -> None:
        if found > most:
            raise _make_error(f"more than {most} {what}", event)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Make one value; the error for one that cannot be made names its line."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # A date such as 2024-13-01, `!!bool maybe`, `!!int ""`.
            raise _make_error(f"{short_repr(node.value)} is no {node.tag.rpartition(':')[2]}", node) from None

    def construct_yaml_int(self, node: yaml.Node) -> int:
        """Make a whole number; refuse one that does not fit 64 bits."""
        if len(node.value) > 100 or abs(value := super().construct_yaml_int(node)) >= LARGEST:
            raise _make_error(f"{short_repr(node.value)} is too large a number", node)
        return value

    def construct_yaml_float(self, node: yaml.Node) -> float:
        """Make a number; refuse one that is too large for a float, unless it is written as infinity."""
        value = super().construct_yaml_float(node)
        if math.isinf(value) and "inf" not in node.value.lower():
            raise _make_error(f"{short_repr(node.value)} is too large a number", node)
        return value


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Loader.yaml_implicit_resolvers = {
    key: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:float"]
    for key, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_FLOAT = r"^[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.inf|\.nan)$"
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(_FLOAT), list("-+0123456789."))


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes what `_Loader` would take for a number, such as the text "1e-4"."""


_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


def dump_yaml(value: Any) -> str:
    """Write plain data as text that `load_yaml` reads back unchanged."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def parse_scalar(text: str) -> Any:
    """Parse the value of a command-line override by YAML's rules: `true`, `1e-4`, `[64, 64]` and words all work.

    Raises:
        UsageError: says what is wrong with it, not where it stands.
    """
    return _read(text)


def load_yaml(path: str | Path) -> Any:
    """Read a file; return what it says as a `Tree` or `Items`, whose places are `file.yml:12`, or as a `Lone` value."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a UTF-8 text file") from None
    except ValueError:
        raise UsageError(f"{str(path)!r}: no such file; a name cannot hold a NUL character") from None
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path}: larger than {MOST_BYTES // 1024} kB, expected a small file")
    data = _parse_file(path, text)
    return located(data, data.place, data)  # whoever asked may change it


@lru_cache(maxsize=64)  # a plan of many runs reads its few presets and scenarios for each of them
def _parse_file(path: Path, text: str) -> Tree | Items | Lone:
    places: dict[str, str] = {}
    try:
        data = _read(text, lambda node: _walk(node, "", path, places))
    except _NotYaml as error:
        raise UsageError(f"{path}{f':{error.line}' if error.line else ''}: not valid YAML: {error}") from None
    if not places:
        return Tree(place=str(path))
    return _with_places(data, places) if isinstance(data, (dict, list)) else Lone(data, places[""])


def _with_places(data: Any, places: Mapping[str, str], path: str = "", outer: str = "") -> Any:
    """Return data as a tree; `places` has those of all dotted paths, `outer` is that of what is around it."""
    if not isinstance(data, (dict, list)):
        return data
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    paths = {key: f"{path}.{key}" if path else str(key) for key, _ in pairs}
    place = places.get(path, outer)
    own = {str(key): places[below] for key, below in paths.items() if below in places}
    if isinstance(data, dict):
        return Tree({key: _with_places(data[key], places, paths[key], place) for key in data}, place, own)
    return Items([_with_places(value, places, paths[i], place) for i, value in enumerate(data)], place, own)


class _NotYaml(UsageError):
    """What is wrong with a text, and in which line if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def _read(text: str, look: Callable[[yaml.Node], None] = lambda node: None) -> Any:
    """Parse a text; `look` gets its nodes, which know their lines, before data are made of them."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        look(node)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _NotYaml(error.problem or error.context, mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise _NotYaml(str(error).splitlines()[0]) from None


def _walk(node: yaml.Node, prefix: str, path: Path, places: dict[str, str]) -> None:
    places.setdefault(prefix, f"{path}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"{path}:{key.start_mark.line + 1}: a key must be a word, not a list or mapping")
            if key.tag not in KEY_TAGS:
                given = f"the {key.tag.rpartition(':')[2]} {short_repr(key.value)}"
                where = f"{path}:{key.start_mark.line + 1}"
                raise UsageError(f"{where}: expected text as a key, got {given}; in quotes it is text")
            if key.value in seen:
                raise UsageError(f"{path}:{key.start_mark.line + 1}: {key.value!r} is given twice")
            seen.add(key.value)
            inner = f"{prefix}.{key.value}" if prefix else str(key.value)
            places[inner] = f"{path}:{key.start_mark.line + 1}"
            _walk(value, inner, path, places)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            _walk(value, f"{prefix}.{i}" if prefix else str(i), path, places)
