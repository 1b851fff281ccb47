"""Presets say how big: data, model, schedule, and with which options a method ran there. One YAML file each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..errors import unknown
from ..names import check_name
from ..yamlfile import load_yaml


def preset_files() -> dict[str, Path]:
    files = sorted(Path(__file__).parent.glob("[!.]*.yml"))
    return {check_name(file.stem, "preset", str(file)): file for file in files}


def read_preset(name: str) -> tuple[dict, dict[str, str]]:
    """(data, origins) of a preset."""
    files = preset_files()
    if name not in files:
        raise unknown("preset", name, files)
    return load_yaml(files[name])


@cache
def preset_options(name: str, section: str = "algorithms") -> dict[str, dict[str, Any]]:
    """Return the options that a preset gives in place of the defaults, by method (or network: `architectures`)."""
    return read_preset(name)[0].get(section) or {}
