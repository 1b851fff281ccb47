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

USER_MODULE = "fmtlbench_user_"  # begins the name of the module that a user's file becomes


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
            except (Exception, SystemExit) as error:  # one broken plug-in must not take the others away
                reason = f"sys.exit({error.code})" if isinstance(error, SystemExit) else error
                warnings.warn(f"entry point {point.name} = {point.value} does not load: {reason}", stacklevel=2)

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
        spec = importlib.util.spec_from_file_location(USER_MODULE + path.stem, path)
        module = importlib.util.module_from_spec(spec)
        before = dict(self._items)
        sys.modules[spec.name] = module
        try:
            _HELPERS.look_beside(path)
            _execute(module, path)
            new = [v for v in self._items.values() if v.__module__ == spec.name]
        finally:
            self._items = before  # a file is found by its path only: edited or copied, it may use its name again
        if len(new) != 1:
            raise UsageError(f"{path} registers {len(new)} {self.kind}s, expected exactly one")
        return new[0]

    def __getitem__(self, name: str) -> Any:
        return self.resolve(name)

    def helper_files(self) -> list[Path]:
        """The modules beside it that the file which was resolved last has imported."""
        return _HELPERS.files()

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


class _Helpers:
    """The modules that lie beside a user's file. Those of one file are forgotten when the next is executed.

    Without that, two methods with a `helper.py` each would share the first one, and an edited one would stay as it was.
    """

    def __init__(self) -> None:
        self._folder: str | None = None
        self._before: set[str] = set()  # names of the modules that were there before the file was executed

    def look_beside(self, path: Path) -> None:
        """Let the file at `path` import what lies beside it, at once or in a hook; what is installed goes first."""
        if self._folder in sys.path:
            sys.path.remove(self._folder)
        for name in self._modules():
            del sys.modules[name]
        self._folder, self._before = str(path.resolve().parent), set(sys.modules)
        sys.path.append(self._folder)
        importlib.invalidate_caches()

    def files(self) -> list[Path]:
        """The files of those that were imported."""
        files = (getattr(module, "__file__", None) for _, module in sorted(self._modules().items()))
        return [Path(file).resolve() for file in files if file]

    def _modules(self) -> dict[str, Any]:
        new = {name: module for name, module in sys.modules.items() if name not in self._before}
        tops = {name for name, module in new.items() if "." not in name and self._is_beside(module)}
        return {name: module for name, module in new.items() if name.partition(".")[0] in tops}

    def _is_beside(self, module: Any) -> bool:
        file = getattr(module, "__file__", None)
        if file is None or module.__name__.startswith(USER_MODULE):
            return False
        place = Path(file).resolve().parent
        return str(place.parent if hasattr(module, "__path__") else place) == self._folder


_HELPERS = _Helpers()


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
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == module.__file__]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        reason = " ".join(str(error).split()) or "no reason given"
        raise UsageError(f"{where}: {type(error).__name__}: {reason}") from error
