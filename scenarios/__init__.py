"""The scenarios: one YAML file each, checked when loaded. A user's own is given by path."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..base.errors import UsageError, unknown
from ..base.names import check_name, name_files
from ..base.schema import build
from ..base.yamlfile import load_yaml
from ..data.plugins import take_file
from ._parameters import Parameters
from ._probe import ROLES, Expectation, Probe
from ._schema import ClientSpec, Partition, Scenario, check_client_names, check_images, check_scenario

__all__ = [
    "ROLES",
    "ClientSpec",
    "Expectation",
    "Parameters",
    "Partition",
    "Probe",
    "Scenario",
    "check_client_names",
    "check_images",
    "check_scenario",
    "load_scenario",
    "probe_names",
    "read_scenario",
    "scenario_files",
    "take_files",
]


def scenario_files() -> dict[str, Path]:
    """Return the files of the built-in scenarios and of those that installed packages bring, by name.

    A package brings scenarios by an entry point of group `fmtlbench.scenarios` that loads to a folder.
    """
    found: dict[str, Path] = {}
    for folder in [Path(__file__).parent, *_plugin_folders()]:
        files, problems = name_files(folder, "scenario")
        for problem in problems:  # the other files are still usable
            warnings.warn(f"a scenario is left out: {problem}", stacklevel=2)
        for name in files.keys() & found.keys():
            raise UsageError(f"scenario {name!r} is defined twice: {found[name]} and {files[name]}")
        found |= files
    return found


def _plugin_folders() -> Iterator[Path]:
    from importlib.metadata import entry_points  # here: a start without it is quicker

    for point in entry_points(group=__name__):
        try:
            yield Path(str(point.load()))
        except (Exception, SystemExit) as error:
            warnings.warn(f"entry point {point.name} = {point.value} does not load: {error!r}", stacklevel=3)


def probe_names() -> list[str]:
    """Return the names of the scenarios that are probes: the right answer is known there."""
    return [name for name, file in scenario_files().items() if load_scenario(str(file)).probe is not None]


def read_scenario(name: str) -> tuple[str, dict, dict[str, str]]:
    """Read a scenario by name or by path, before overrides and checks; return its name, data and origins."""
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
    _complete_paths(path, data)
    return path.stem, data, origins


def _complete_paths(path: Path, data: dict) -> None:
    """Make the paths of files that a scenario names absolute: they are relative to the scenario's own folder."""

    def beside(value: Any, *endings: str) -> Any:
        return str((path.parent / value).absolute()) if isinstance(value, str) and value.endswith(endings) else value

    if isinstance(files := data.get("datasets"), list):
        data["datasets"] = [beside(file, "") for file in files]
    if isinstance(rule := data.get("partition"), dict):
        rule["kind"] = beside(rule.get("kind", "equal"), ".py")
    for group in _list_groups(data):
        if isinstance(tasks := group.get("tasks"), list):
            group["tasks"] = [beside(task, ".py") for task in tasks]


def take_files(data: dict, tree: dict, where: str = "") -> None:
    """Register the partitions and tasks that a scenario gives as files, and replace the paths by their names.

    Args:
        data: the scenario's own tree.
        tree: the tree of the config, which notes the files.
        where: what messages begin with.
    """
    rule = data.get("partition")
    if isinstance(rule, dict) and isinstance(kind := rule.get("kind"), str) and kind.endswith(".py"):
        rule["kind"] = take_file("partition", kind, where, tree)
    for group in _list_groups(data):
        tasks = group.get("tasks")
        for j, task in enumerate(tasks if isinstance(tasks, list) else ()):
            if isinstance(task, str) and task.endswith(".py"):
                tasks[j] = take_file("task", task, where, tree)


def _list_groups(data: dict) -> list[dict]:
    groups = data.get("clients")
    return [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []


def load_scenario(name: str) -> Scenario:
    """Load and check a scenario by name or by path, with its parameters at their defaults."""
    stem, data, origins = read_scenario(name)
    Parameters(stem, data, origins).fill(data)
    take_files(data, {}, name)
    scenario = build(Scenario, {"name": stem, **data}, origins)
    check_scenario(scenario, origins)
    return scenario
