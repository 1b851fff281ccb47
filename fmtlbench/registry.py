"""Name → class, filled by the files of a package, by entry points, and by a path the user gives."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from .errors import UsageError, unknown


class Registry(Mapping[str, Any]):
    """A lazily filled mapping. Files starting with `_` hold shared code and register nothing."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind, self.package = kind, package
        self._items: dict[str, Any] = {}
        self._loaded = False

    def register(self, name: str):
        """Class decorator: `@ALGORITHMS.register("fedavg")`."""

        def add(item):
            if name in self._items and self._items[name].__qualname__ != item.__qualname__:
                raise UsageError(f"{self.kind} {name!r} is registered twice: {self._items[name]!r} and {item!r}")
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
            point.load()

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
        before = dict(self._items)
        spec = importlib.util.spec_from_file_location(f"fmtlbench_user_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        new = [v for k, v in self._items.items() if before.get(k) is not v]
        if len(new) != 1:
            raise UsageError(f"{path} registers {len(new)} {self.kind}s, expected exactly one")
        return new[0]

    def __getitem__(self, name: str) -> Any:
        return self.resolve(name)

    def __iter__(self) -> Iterator[str]:
        self.load()
        return iter(sorted(self._items))

    def __len__(self) -> int:
        self.load()
        return len(self._items)
