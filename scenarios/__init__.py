"""The scenarios: one YAML file each, checked when loaded. A user's own is given by path."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

from ..errors import UsageError, unknown
from ..names import check_name
from ..schema import build
from ..yamlfile import load_yaml
from ._parameters import Parameters
from ._probe import ROLES, Expectation, Probe
from ._schema import RELABELLED, ClientSpec, Partition, Scenario, check_client_names, check_images, check_scenario

__all__ = [
    "RELABELLED", "ROLES", "ClientSpec", "Expectation", "Parameters", "Partition", "Probe", "Scenario",
    "check_client_names", "check_images", "check_scenario", "load_scenario", "probe_names", "read_scenario",
    "scenario_files",
]  # fmt: skip


def scenario_files() -> dict[str, Path]:
    """Name → file, of the built-in scenarios and of those that installed packages bring.

    A package brings scenarios by an entry point of group `fmtlbench.scenarios` that loads to a folder.
    """
    found: dict[str, Path] = {}
    for folder in [Path(__file__).parent, *_plugin_folders()]:
        for file in sorted(folder.glob("[!.]*.yml")):
            try:
                check_name(file.stem, "scenario", str(folder))
            except UsageError as error:  # one odd file must not take the others away
                warnings.warn(f"a scenario is left out: {error}", stacklevel=2)
                continue
            if file.stem in found:
                raise UsageError(f"scenario {file.stem!r} is defined twice: {found[file.stem]} and {file}")
            found[file.stem] = file
    return found


def _plugin_folders() -> Iterator[Path]:
    for point in entry_points(group=__name__):
        try:
            yield Path(str(point.load()))
        except (Exception, SystemExit) as error:
            warnings.warn(f"entry point {point.name} = {point.value} does not load: {error!r}", stacklevel=3)


def probe_names() -> list[str]:
    """The scenarios that are probes: their answer is known."""
    return [name for name, file in scenario_files().items() if load_scenario(str(file)).probe is not None]


def read_scenario(name: str) -> tuple[str, dict, dict[str, str]]:
    """(name, data, origins) of a scenario by name or by path, before overrides and checks."""
    if name.endswith((".yml", ".yaml")):
        path = Path(name)
    else:
        files = scenario_files()
        if name not in files:
            raise unknown("scenario", name, files)
        path = files[name]
    check_name(path.stem, "scenario", str(path))
    data, origins = load_yaml(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path}: expected a mapping with keys description, paper, version, clients")
    if "name" in data:
        raise UsageError(f"{origins['name']}: name: a scenario is named by its file ({path.stem}); remove the key")
    return path.stem, data, origins


def load_scenario(name: str) -> Scenario:
    """A checked scenario with its parameters at their defaults, by name or by path."""
    stem, data, origins = read_scenario(name)
    Parameters(stem, data, origins).fill(data)
    scenario = build(Scenario, {"name": stem, **data}, origins)
    check_scenario(scenario, origins)
    return scenario
