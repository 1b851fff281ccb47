"""Presets say how big: data, model, schedule. One YAML file each."""

from __future__ import annotations

from pathlib import Path

from ..errors import unknown
from ..yamlfile import load_yaml


def preset_files() -> dict[str, Path]:
    return {file.stem: file for file in sorted(Path(__file__).parent.glob("*.yml"))}


def read_preset(name: str) -> tuple[dict, dict[str, str]]:
    """(data, origins) of a preset."""
    files = preset_files()
    if name not in files:
        raise unknown("preset", name, files)
    return load_yaml(files[name])
