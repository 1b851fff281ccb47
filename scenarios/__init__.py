"""The scenarios: one YAML file each, checked when loaded. A user's own is given by path."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import UsageError, short_repr, unknown
from ..base.extends import ENDINGS, EXTENDS, read_ancestry
from ..base.located import Items, Tree, locate
from ..base.names import check_name, name_files
from ..base.schema import build
from ..base.yamlfile import load_yaml
from ..data.partitions import PARTITIONS
from ..tasks import TASKS
from ._parameters import Parameters
from ._probe import ROLES, Expectation, Probe
from ._schema import ClientSpec, Partition, Scenario, check_client_names, check_images, check_scenario

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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


# In a file that extends another: what differs in each of its groups of clients, and groups that come after them.
EACH, FURTHER = "each", "further"


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
    for point in _entry_points(tuple(sys.path)):
        try:
            yield Path(str(point.load()))
        except (Exception, SystemExit) as error:
            warnings.warn(f"entry point {point.name} = {point.value} does not load: {error!r}", stacklevel=3)


@cache
def _entry_points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return what the packages installed on a path bring; to look through all of them takes a while."""
    from importlib.metadata import entry_points  # here: a start without it is quicker

    return tuple(entry_points(group=__name__))


def probe_names() -> list[str]:
    """Return the names of the scenarios that are probes: the right answer is known there."""
    return [name for name, file in scenario_files().items() if load_scenario(str(file)).probe is not None]


def read_scenario(name: str) -> tuple[str, Tree]:
    """Read a scenario by name or by path with all that it extends, before overrides and checks: its name, its data."""
    ancestry = read_ancestry(name, "", "scenario", _find_scenario, _load)
    *children, (_, data) = ancestry
    for _, own in reversed(children):
        data.pop("description", None)
        _extend(data, own)
    return ancestry[0][0].stem, data


def _find_scenario(given: str, where: str) -> Path:
    """Return the file of a scenario that is given by name or by path; `where` names it, if a file does."""
    if not given.endswith(ENDINGS):
        own = Path(__file__).parent / f"{given}.yml"
        if given.isidentifier() and own.is_file():  # nobody else's may have its name: packages need not be asked
            return own
        files = scenario_files()
        if given not in files:
            raise unknown("scenario", given, files, where)
        return files[given]
    path = Path(given)
    if where and not path.is_file():
        raise UsageError(f"{where}: no such file: {path}")
    return path


def _load(path: Path) -> Tree:
    """Read one file, unmerged; refuse what is not of a scenario's form."""
    check_name(path.stem, "scenario", str(path))
    data = load_yaml(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path}: expected a mapping with keys description, paper, version, clients")
    if "name" in data:
        raise UsageError(f"{locate(data, 'name')}: name: a scenario is named by its file ({path.stem}); remove the key")
    for key, form in ((EACH, dict), (FURTHER, list)):
        if key not in data:
            continue
        where = f"{locate(data, key)}: {key}"
        if EXTENDS not in data or "clients" in data:
            raise UsageError(f"{where}: is said of another scenario's clients; name it with extends, leave clients")
        if not isinstance(data[key], form):
            expected = "a mapping" if form is dict else "a list"
            raise UsageError(f"{where}: expected {expected}, got {short_repr(data[key])}")
    _complete_paths(path, data)
    return data


def _extend(data: Tree, own: Tree) -> None:
    """Put what a file says into the data of what it extends."""
    each, further = own.pop(EACH, {}), own.pop(FURTHER, [])
    data.merge(own)
    if not isinstance(groups := data.get("clients"), Items):
        return  # which the schema refuses
    for group in groups if each else ():
        if isinstance(group, Tree):
            group.merge(each.copy())
    for i, group in enumerate(further):
        groups.add(group, locate(further, str(i)))


def _complete_paths(path: Path, data: dict) -> None:
    """Make the paths of files that a scenario names absolute: they are relative to the scenario's own folder."""

    def beside(value: Any, *endings: str) -> Any:
        return str((path.parent / value).absolute()) if isinstance(value, str) and value.endswith(endings) else value

    if isinstance(files := data.get("datasets"), list):
        files[:] = [beside(file, "") for file in files]
    if isinstance(rule := data.get("partition"), dict) and "kind" in rule:
        rule["kind"] = beside(rule["kind"], ".py")
    for group in _list_groups(data):
        if isinstance(tasks := group.get("tasks"), list):
            tasks[:] = [beside(task, ".py") for task in tasks]


def take_files(data: dict, tree: dict, where: str = "") -> None:
    """Register the partitions and tasks that a scenario gives as files, and replace the paths by their names.

    Args:
        data: the scenario's own tree.
        tree: the tree of the config, which notes the files.
        where: what messages begin with.
    """
    rule = data.get("partition")
    if isinstance(rule, dict) and isinstance(kind := rule.get("kind"), str) and kind.endswith(".py"):
        rule["kind"] = PARTITIONS.take(kind, where, tree)
    for group in _list_groups(data):
        tasks = group.get("tasks")
        for j, task in enumerate(tasks if isinstance(tasks, list) else ()):
            if isinstance(task, str) and task.endswith(".py"):
                tasks[j] = TASKS.take(task, where, tree)


def _list_groups(data: dict) -> list[dict]:
    """List what a scenario says of groups of clients, in whatever form of it makes sense so far."""
    listed = [group for key in ("clients", FURTHER) if isinstance(data.get(key), list) for group in data[key]]
    return [group for group in (*listed, data.get(EACH)) if isinstance(group, dict)]


def load_scenario(name: str) -> Scenario:
    """Load and check a scenario by name or by path, with its parameters at their defaults."""
    stem, data = read_scenario(name)
    Parameters(stem, data).fill(data)
    take_files(data, {}, name)
    data["name"] = stem
    scenario = build(Scenario, data)
    check_scenario(scenario, data)
    return scenario
