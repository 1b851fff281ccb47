"""Name → class, filled by the files of a package, by entry points, and by a path the user gives."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from .errors import FmtlbenchError, UsageError, unknown
from .names import check_name


class Registry(Mapping[str, Any]):
    """A lazily filled mapping. Files starting with `_` hold shared code and register nothing."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind, self.package = kind, package
        self._items: dict[str, Any] = {}
        self._loaded = False

    def register(self, name: str):
        """Class decorator: `@ALGORITHMS.register("fedavg")`."""
        check_name(name, self.kind)

        def add(item):
            old = self._items.get(name, item)
            if _origin(old) != _origin(item):  # the same class again is a reload
                raise UsageError(
                    f"{self.kind} {name!r} is registered twice, by {_origin(old)} and by {_origin(item)}; rename one"
                )
            item.name = name
            self._items[name] = item
            return item

        return add

    def load(self) -> None:
        """Import every file of the package and every third-party entry point, once."""
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.package}.{module.name}")
        for point in entry_points(group=self.package):
            try:
                point.load()
            except Exception as error:  # one broken plug-in must not take the others away
                warnings.warn(f"entry point {point.name} = {point.value} does not load: {error}", stacklevel=2)

    def resolve(self, name: str, where: str = "") -> Any:
        """Look `name` up; a path to a .py file is imported and its one registration returned."""
        if name.endswith(".py"):
            return self._from_file(Path(name), where)
        self.load()
        if name not in self._items:
            raise unknown(self.kind, name, self._items, where)
        return self._items[name]

    def _from_file(self, path: Path, where: str) -> Any:
        if not path.is_file():
            raise UsageError(f"{where + ': ' if where else ''}no such file: {path}")
        self.load()
        spec = importlib.util.spec_from_file_location(f"fmtlbench_user_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        before = dict(self._items)
        sys.modules[spec.name] = module
        try:
            _execute(module, path)
            new = [v for v in self._items.values() if v.__module__ == spec.name]
        finally:
            self._items = before  # a file is found by its path only: edited or copied, it may use its name again
        if len(new) != 1:
            raise UsageError(f"{path} registers {len(new)} {self.kind}s, expected exactly one")
        return new[0]

    def __getitem__(self, name: str) -> Any:
        return self.resolve(name)

    # An unknown name is a LookupError with advice, not the KeyError that Mapping's own versions of these wait for.
    def __contains__(self, name: object) -> bool:
        self.load()
        return name in self._items

    def get(self, name: str, default: Any = None) -> Any:
        self.load()
        return self._items.get(name, default)

    def __iter__(self) -> Iterator[str]:
        self.load()
        return iter(sorted(self._items))

    def __len__(self) -> int:
        self.load()
        return len(self._items)


def _origin(item: Any) -> str:
    return f"{item.__module__}.{item.__qualname__}"


def _execute(module: Any, path: Path) -> None:
    """Run a user's file; what goes wrong in it is told in one line, with the line it happened on."""
    try:
        module.__spec__.loader.exec_module(module)
    except FmtlbenchError:
        raise
    except SyntaxError as error:
        file = path if error.filename in (module.__file__, None) else error.filename
        raise UsageError(f"{file}:{error.lineno}: {error.msg}") from None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == module.__file__]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        reason = " ".join(str(error).split())
        raise UsageError(f"{where}: {type(error).__name__}: {reason}") from error
