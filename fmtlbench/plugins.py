"""Files of a user that bring a metric, a partition or a task: read when a config is made, and wherever it is used.

Where a config may name one of these, it may give the path of a .py file with one registration instead. The config then
holds the registered name, what is in the file counts for its hash, and every process that works by the config reads the
file before it looks the name up.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import FmtlbenchError
from .metrics import METRICS
from .partitions import PARTITIONS
from .registry import Registry
from .tasks import TASKS
from .user_code import UserCode, read_user_code

if TYPE_CHECKING:
    from .config import RunConfig

OPEN: dict[str, Registry[Any]] = {registry.kind: registry for registry in (METRICS, PARTITIONS, TASKS)}

_loaded: dict[str, UserCode] = {}  # entry of a config → what it stands for in this process now


def take_file(kind: str, path: str, where: str, tree: dict[str, Any]) -> str:
    """Register what a file brings, note the file in a config's tree, and return the registered name."""
    file = Path(path).absolute()
    name = OPEN[kind].keep(str(file), where)
    entry, code = f"{kind} {name}", read_user_code(OPEN[kind], str(file))
    _loaded[entry] = code
    tree.setdefault("plugins", {})[entry] = code.content
    tree.setdefault("plugin_files", {})[entry] = str(file)
    return name


def load_plugins(config: RunConfig) -> None:
    """Register in this process what the files of a config bring; refuse a file that is missing or has changed."""
    for entry, path in config.plugin_files.items():
        if not Path(path).is_file():
            raise FmtlbenchError(f"{path}: the file that brought {entry!r} is not there any more")
        known = _loaded.get(entry)
        if known is None or known.content != config.plugins.get(entry) or not known.is_unchanged():
            registry = OPEN[entry.partition(" ")[0]]  # not read yet, or another config's file has the same name
            registry.keep(path)
            _loaded[entry] = read_user_code(registry, path)
        if _loaded[entry].content != config.plugins.get(entry):
            raise FmtlbenchError(f"{path}: the file that brought {entry!r} has changed since, or a module beside it")
