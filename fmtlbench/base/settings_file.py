"""Read the user's own settings from one small YAML file: what belongs to a machine, not to a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError
from .located import locate
from .schema import build
from .yamlfile import load_yaml

VARIABLE = "FMTLBENCH_CONFIG"


@dataclass(frozen=True)
class UserConfig:
    """Every key is optional."""

    data_root: str | None = None  # folder of the real datasets: absolute, or starting with ~
    country: str | None = None  # three-letter code: whose electricity a run's carbon figure counts with
    region: str | None = None  # of that country
    keep: str | None = None  # of the networks of a finished run: last or none (run --keep)


def config_path() -> Path:
    """Return the file of the settings: $FMTLBENCH_CONFIG, else config.yml in the user's configuration folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_config_path

    return user_config_path("fmtlbench") / "config.yml"


def read_user_config() -> UserConfig:
    """Read the settings; without a file there are none. A file that $FMTLBENCH_CONFIG names must exist."""
    path = config_path()
    if not path.exists() and not os.environ.get(VARIABLE):
        return UserConfig()
    data = load_yaml(path)
    config = build(UserConfig, data)
    if config.data_root is not None and not Path(config.data_root).expanduser().is_absolute():
        # a relative one would mean another folder in every working directory
        raise UsageError(f"{locate(data, 'data_root')}: data_root: expected an absolute path, got {config.data_root!r}")
    return config
