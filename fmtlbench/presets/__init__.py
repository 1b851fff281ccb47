"""Presets: sizes of data and model, the schedule, and options of methods. One YAML file each."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import unknown
from ..names import check_name
from ..schema import plain
from ..yamlfile import load_yaml


def preset_files() -> dict[str, Path]:
    files = sorted(Path(__file__).parent.glob("[!.]*.yml"))
    return {check_name(file.stem, "preset", str(file)): file for file in files}


def read_preset(name: str) -> tuple[dict, dict[str, str]]:
    """Read a preset; return its data and where each value stands."""
    files = preset_files()
    if name not in files:
        raise unknown("preset", name, files)
    return load_yaml(files[name])


@cache
def preset_options(name: str, section: str = "algorithms") -> dict[str, dict[str, Any]]:
    """Return the options that a preset gives in place of the defaults, by method (or network: `architectures`)."""
    return read_preset(name)[0].get(section) or {}


def default_options(method: Any, preset: str) -> dict[str, Any]:
    """Return a method's default options under a preset: its own, replaced by those that the preset gives.

    A preset that is not installed gives none. A default that JSON cannot hold is left out, since no run can have it.
    """
    own = {}
    for option in dataclasses.fields(method.Params):
        made = option.default_factory is not dataclasses.MISSING
        value = option.default_factory() if made else option.default
        if value is not dataclasses.MISSING:
            with contextlib.suppress(TypeError, ValueError):
                own[option.name] = json.loads(json.dumps(plain(value), allow_nan=False))
    given = preset_options(preset).get(method.name, {}) if preset in preset_files() else {}
    return own | given
