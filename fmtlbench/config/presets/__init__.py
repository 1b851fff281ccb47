"""Presets: sizes of data and model, the schedule, and options of methods. One YAML file each, or a user's by path."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...base.errors import UsageError, short_repr, unknown
from ...base.extends import ENDINGS, EXTENDS, read_ancestry
from ...base.located import Tree, locate, located
from ...base.names import check_name, name_files
from ...base.schema import plain
from ...base.yamlfile import load_yaml
from ..named_files import rewrite_files

MAPPINGS = ("federation", "data", "model", "train", "evaluation", "algorithms", "architectures")
KEYS = ("description", EXTENDS, "checkpoint_every", *MAPPINGS)


def preset_files() -> dict[str, Path]:
    """Return the files of the presets that come with the package, by name."""
    return name_files(Path(__file__).parent, "preset")[0]


def find_preset(given: str, where: str = "") -> Path:
    """Return the file of a preset that is given by name or by path; `where` is the flag or line that names it.

    Raises:
        UsageError: No such name or file, or a file whose name an installed preset has.
    """
    files = preset_files()
    if not given.endswith(ENDINGS):
        if given not in files:
            raise unknown("preset", given, files, where)
        return files[given]
    path, prefix = Path(given), f"{where}: " if where else ""
    if not path.is_file():
        raise UsageError(f"{prefix}no such file: {path}; an installed preset is given by its name: {', '.join(files)}")
    check_name(path.stem, "preset", f"{prefix}{path}")
    if path.stem in files:
        raise UsageError(f"{prefix}{path}: {path.stem!r} is the name of an installed preset; call the file differently")
    return path


def name_preset(given: str) -> str:
    """Return what tables call a preset that is given by name or by path."""
    return Path(given).stem if given.endswith(ENDINGS) else given


def list_ancestry(given: str, where: str = "") -> list[Path]:
    """Return the file of a preset and those it extends, the nearest first.

    Raises:
        UsageError: One of them does not exist, or they extend each other in a circle.
    """
    return [file for file, _ in _read_files(given, where)]


def _read_files(given: str, where: str = "") -> list[tuple[Path, Tree]]:
    return read_ancestry(given, where, "preset", find_preset, _load)


def read_preset(given: str, where: str = "") -> Tree:
    """Read a preset by name or path with all that it extends; the files that it names are where they lie."""
    return _combine(_with_folder(tree, file.parent) for file, tree in reversed(_read_files(given, where)))


def _combine(trees: Iterable[Tree]) -> Tree:
    """Merge what presets say, the last one's own values above those of the first."""
    combined = Tree()
    for tree in trees:
        combined.pop("description", None)  # of what is extended
        combined.merge(tree)
    return combined


def _load(file: Path) -> Tree:
    """Read one file, unmerged; refuse what is not of a preset's form."""
    tree = load_yaml(file)
    if not isinstance(tree, dict):
        raise UsageError(f"{locate(tree)}: expected the sections of a preset, got {short_repr(tree)}")
    for key, value in tree.items():
        if key not in KEYS:
            raise unknown("section of presets", str(key), KEYS, locate(tree, str(key)))
        if key in MAPPINGS and not isinstance(value, dict):
            raise UsageError(f"{locate(tree, key)}: {key}: expected a mapping, got {short_repr(value)}")
    if not isinstance(tree.get("description", ""), str):
        raise UsageError(f"{locate(tree, 'description')}: description: expected text")
    if "code" in tree.get("model", {}):
        raise UsageError(f"{locate(tree, 'model.code')}: model.code: is filled in by itself")
    return tree


def _with_folder(tree: Tree, folder: Path) -> Tree:
    """Return a preset's data in which the files that it names lie in `folder`."""
    return located(rewrite_files(tree, lambda name: str((folder / name).absolute())), tree.place, tree)


def identify_preset(given: str) -> str | None:
    """Return the sha256 of what a preset file says, with what it extends; None for a preset that is installed.

    Comments, the description and the order of values do not count.
    """
    if not given.endswith(ENDINGS):
        return None
    tree = _combine(tree for _, tree in reversed(_read_files(given)))  # where the files lie decides no number
    tree.pop("description", None)
    return hashlib.sha256(json.dumps(tree, sort_keys=True, default=str).encode()).hexdigest()


def preset_options(given: str, section: str = "algorithms") -> dict[str, dict[str, Any]]:
    """Return the options that a preset gives in place of the defaults, by method (or network: `architectures`)."""
    read = read_preset if given.endswith(ENDINGS) else _read_installed  # a user's file may change meanwhile
    return read(given).get(section) or {}


@cache
def _read_installed(name: str) -> Tree:
    return read_preset(name)


def default_options(method: Any, preset: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a method's default options under a preset: its own, replaced by those that the preset gives.

    A default that JSON cannot hold is left out, since no run can have it.

    Args:
        method: The class.
        preset: A name or a path. One that is neither installed nor a path gives no options.
        given: The options that the preset gave the method when a config was made, if it was a user's file.
    """
    own = {}
    for option in dataclasses.fields(method.Params):
        made = option.default_factory is not dataclasses.MISSING
        value = option.default_factory() if made else option.default
        if value is not dataclasses.MISSING:
            with contextlib.suppress(TypeError, ValueError):
                own[option.name] = json.loads(json.dumps(plain(value), allow_nan=False))
    if given is None:
        there = preset.endswith(ENDINGS) or preset in preset_files()
        given = preset_options(preset).get(method.name, {}) if there else {}
    return {**own, **given}
