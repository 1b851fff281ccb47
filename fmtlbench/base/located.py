"""Plain data that know where they were said: mappings and lists whose values have a place, `file.yml:12` or a flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Located:
    """What `Tree` and `Items` have in common.

    Attributes:
        place: Where the whole of it was said.
        places: Where its values were said, by key or, of a list, by number as text; others are said at `place`.
    """

    place: str
    places: dict[str, str]

    def put(self, key: Any, value: Any, place: str) -> None:
        """Set a value that was said, with all below it, at `place`."""
        self[key] = located(value, place)  # type: ignore[index]
        self.places[str(key)] = place


class Tree(dict[str, Any], Located):
    """A mapping that knows where it and its values were said. To assign a value leaves its place as it was."""

    def __init__(self, values: Any = (), place: str = "", places: Mapping[str, str] | None = None) -> None:
        super().__init__(values)
        self.place, self.places = place, dict(places or {})

    def copy(self) -> Tree:
        """Return a copy of all levels, with the same places."""
        return located(self, self.place, self)

    def section(self, key: str) -> Tree:
        """Return the mapping at `key`; if there is no value yet, put an empty one there."""
        return self.setdefault(key, Tree(place=self.places.get(key, self.place)))

    def merge(self, own: Tree) -> None:
        """Take over what `own` says: mappings are merged key by key, all else replaces what was there."""
        for key, value in own.items():
            if isinstance(value, Tree) and isinstance(self.get(key), Tree):
                self[key].merge(value)
            else:
                self[key] = value
        self.place = own.place
        self.places |= own.places


class Items(list, Located):
    """A list that knows where it and its values were said."""

    def __init__(self, values: Any = (), place: str = "", places: Mapping[str, str] | None = None) -> None:
        super().__init__(values)
        self.place, self.places = place, dict(places or {})

    def add(self, value: Any, place: str) -> None:
        """Append a value that was said at `place`, and keep the places that it has inside."""
        self.places[str(len(self))] = place
        self.append(value)


class Lone:
    """All that a file says if it is neither a mapping nor a list: shown as the value itself."""

    def __init__(self, value: Any, place: str) -> None:
        self.value, self.place = value, place

    def __repr__(self) -> str:
        return repr(self.value)


def located(value: Any, place: str = "", like: Any = None) -> Any:
    """Return a copy of plain data as a tree in which all was said at `place`, or where `like` has the same value."""
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    is_mapping = isinstance(value, Mapping)
    made: Any = Tree(place=place) if is_mapping else Items(place=place)
    known = like.places if isinstance(like, Located) else {}
    for key, inner in value.items() if is_mapping else enumerate(value):
        name = str(key)
        if name in known:
            made.places[name] = known[name]
        copy = located(inner, known.get(name, place), _below(like, name))
        if is_mapping:
            made[key] = copy
        else:
            made.append(copy)
    return made


def locate(data: Any, path: str = "") -> str:
    """Return where the value at a dotted path, or the nearest one above it, was said; "" if that is not known."""
    place, parts = getattr(data, "place", ""), path.split(".") if path else []
    while parts and isinstance(data, Located):
        keys = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]  # one key may hold dots
        key = next((key for key in keys if key in data.places), parts[0])
        place = data.places.get(key, place)
        data, parts = _below(data, key), parts[key.count(".") + 1 :]
    return place


def look_up(tree: Any, path: str) -> Located | Lone:
    """Return the value at a dotted path of a tree with where it was said; an empty mapping if there is none."""
    place, value = locate(tree, path), tree
    for part in path.split("."):
        value = {} if isinstance(value, Mapping) and part not in value else _below(value, part)
    return located(value, place, value) if isinstance(value, (Mapping, list)) else Lone(value, place)


def _below(data: Any, key: str) -> Any:
    """Return the value of a mapping or a list at a key; None if it has none."""
    if isinstance(data, Mapping):
        return data.get(key)
    is_index = isinstance(data, list) and key.isdecimal() and int(key) < len(data)
    return data[int(key)] if is_index else None
