"""Read the config.yaml of a run."""

from __future__ import annotations

from pathlib import Path

from ..base.errors import short_repr
from ..base.located import Tree
from ..base.stored import FIRST_FORMAT, DamagedRun, check_format
from ..base.yamlfile import load_yaml


def read_config(file: Path) -> Tree:
    """Read a run's config.yaml, or a copy of it, without its format number; each value knows its line."""
    if file.exists() and not file.is_file():  # a pipe would be read for ever
        raise DamagedRun(file.parent, f"{file.name} cannot be read: not a regular file")
    tree = load_yaml(file)
    if not isinstance(tree, Tree):
        raise DamagedRun(file.parent, f"{file.name}: expected a mapping, got {short_repr(tree)}")
    if not tree:
        raise DamagedRun(file.parent, f"{file.name} is empty")
    check_format(file.parent, file.name, tree.pop("format", FIRST_FORMAT))
    return tree
