"""Import a user's file as a package of its own: what it imports from beside it is nobody else's, whenever it does.

Two files may each have a `helper.py`, and an edited one is read anew: so modules beside a user's file are imported
below a name that belongs to that file. Installed modules of the same name come first.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import sys
import traceback
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import FmtlbenchError, UsageError

USER_MODULE = "fmtlbench_user_"  # begins the names of the modules that users' files become


def name_module(path: Path) -> str:
    """Return the name of the module that a user's file becomes."""
    full = path.resolve()
    return f"{USER_MODULE}{hashlib.sha256(str(full).encode()).hexdigest()[:12]}.{full.stem}"


def execute(path: Path) -> None:
    """Run a user's file anew; errors are one line that names the file's line."""
    name = name_module(path)
    package = ModuleType(name.partition(".")[0])
    package.__path__ = [str(path.resolve().parent)]
    for old in [old for old in sys.modules if f"{old}.".startswith(f"{package.__name__}.")]:
        del sys.modules[old]  # of an earlier reading
    importlib.invalidate_caches()
    loader = _Loader(name, str(path.absolute()))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules.update({package.__name__: package, name: module})
    try:
        loader.exec_module(module)
    except FmtlbenchError:
        raise
    except SyntaxError as error:
        file = path if error.filename in (module.__file__, None) else error.filename
        raise UsageError(f"{file}:{error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == module.__file__]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        reason = " ".join(str(error).split()) or "no reason given"
        raise UsageError(f"{where}: {type(error).__name__}: {reason}") from error


def helper_files(path: Path) -> list[Path]:
    """Return the files that a user's file, executed before, has imported from beside it."""
    mine = name_module(path)
    package = mine.partition(".")[0]
    beside = [module for name, module in sorted(sys.modules.items()) if name.startswith(f"{package}.") and name != mine]
    return [Path(module.__file__).resolve() for module in beside if module.__file__]


class _Loader(SourceFileLoader):
    """Executes a module whose import statements, at once or later in a function, also look beside the user's file."""

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": partial(_import, package)}
        super().exec_module(module)


class _Finder:
    """Finds the modules beside users' files, below the packages of these."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(USER_MODULE):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader) and spec.origin:
            spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)


def _import(
    package: str, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    """Import as the statement does; a name that is not installed is looked for beside the user's file."""
    top = name.partition(".")[0]
    if level or not top or _is_installed(top) or _Finder.find_spec(f"{package}.{top}", _folder_of(package)) is None:
        return builtins.__import__(name, globals, locals, fromlist, level)
    found = builtins.__import__(f"{package}.{name}", globals, locals, fromlist, 0)
    return found if fromlist else sys.modules[f"{package}.{top}"]


def _is_installed(top: str) -> bool:
    return top in sys.modules or importlib.util.find_spec(top) is not None


def _folder_of(package: str) -> Any:
    return getattr(sys.modules.get(package), "__path__", None)
