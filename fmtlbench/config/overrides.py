"""Values by dotted name, as flags and Python give them: what they may name, and how they get into a config's tree."""

from __future__ import annotations

import json
from typing import Any

from ..base.errors import UsageError, shorten, unknown
from ..base.located import Items, Located, Tree
from ..base.schema import plain
from .setting import is_below

# The sections that an override may change, and what to use for the others.
SECTIONS = ("algo", "checkpoint_every", "data", "evaluation", "federation", "model", "scenario", "train")
ELSEWHERE = {
    "algorithm": "the method is chosen by --algo, its options are algo.<option>",
    "algorithms": "these are a preset's options of all methods; those of this run's method are algo.<option>",
    "architectures": "these are a preset's options of all networks; those of this run's are model.options.<option>",
    "preset": "the preset is chosen by --preset",
    "seed": "the seed is given by --seed",
    "device": "the device is chosen by --device",
    "numerics": "the version of the engine cannot be chosen",
}


def flag_of(key: str, value: Any) -> str:
    """Return the flag that gives a value, for messages."""
    text = shorten(value, lambda v: v if isinstance(v, str) else json.dumps(plain(v), default=str), longest=200)
    return f"--set {key}={text}"


def check_key(key: str, flag: str) -> None:
    """Refuse the name of a value that no override may change; the error says what to use for it."""
    section, *rest = key.split(".")
    if section in ELSEWHERE:
        raise UsageError(f"{flag}: {ELSEWHERE[section]}")
    if section not in SECTIONS:
        raise unknown("section", section, SECTIONS, flag)
    if section == "scenario" and rest in ([], ["name"]):
        raise UsageError(f"{flag}: the scenario is chosen by --scenario and named by its file")
    if is_below(key, ["model.code"]):
        raise UsageError(f"{flag}: is filled in by itself; a network is chosen by model.architecture=NAME or FILE.py")
    if not all(rest):
        raise UsageError(f"{flag}: a name is missing between two dots")


def put_override(tree: Tree, key: str, value: Any, flag: str) -> None:
    """Put an override into the tree; `flag` gave it."""
    check_key(key, flag)
    *parents, leaf = key.split(".")
    node: Any = tree
    for depth, part in enumerate(parents):
        if isinstance(node, Items):
            node = node[_parse_index(node, part, flag)]
        else:
            if part not in node.places:  # a section that no file has
                node.places[part] = flag
            node = node.section(part)
        if not isinstance(node, Located):
            raise UsageError(f"{flag}: {'.'.join(parents[: depth + 1])} is a value, not a section")
    node.put(_parse_index(node, leaf, flag) if isinstance(node, Items) else leaf, plain(value), flag)


def _parse_index(node: list, part: str, flag: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        valid = f"an index from 0 to {len(node) - 1}" if node else "nothing here, the list is empty"
        raise UsageError(f"{flag}: expected {valid}, got {part!r}")
    return int(part)
