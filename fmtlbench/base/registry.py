"""Find classes and records by name: from the files of a package, from entry points, and from a user's file."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar, cast

from .errors import FmtlbenchError, UsageError, unknown
from .names import check_name

USER_MODULE = "fmtlbench_user_"  # begins the name of the module that a user's file becomes


T = TypeVar("T")
Registered = TypeVar("Registered", bound=type)


class Registry(Mapping[str, T]):
    """A lazily filled mapping of names to classes or records.

    Files of the package whose names start with `_` hold shared code and register nothing.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind, self.package = kind, package
        self._items: dict[str, T] = {}
        self._origins: dict[str, tuple[str, str]] = {}  # name → module and what it is called there
        self._loaded = False

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Return a class decorator that registers under `name`: `@ALGORITHMS.register("fedavg")`."""

        def add(item: Registered) -> Registered:
            self._put(name, cast(T, item), (item.__module__, item.__qualname__))
            item.name = name  # type: ignore[attr-defined]  # every registered class has one
            return item

        check_name(name, self.kind)
        return add

    def add(self, item: T) -> T:
        """Register a record under the name it has: `TASKS.add(TaskSpec("depth", …))`."""
        name = check_name(getattr(item, "name", None), self.kind)
        self._put(name, item, (sys._getframe(1).f_globals.get("__name__", "?"), name))
        return item

    def _put(self, name: str, item: T, origin: tuple[str, str]) -> None:
        old = self._origins.get(name, origin)
        # The same one again is a reload. Two files of users may have one name: they go by their paths.
        files = old[0] != origin[0] and all(module.startswith(USER_MODULE) for module, _ in (old, origin))
        if old != origin and not files:
            was, new = (".".join(place) for place in (old, origin))
            raise UsageError(f"{self.kind} {name!r} is registered twice, by {was} and by {new}; rename one")
        self._items[name], self._origins[name] = item, origin

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
            except (Exception, SystemExit) as error:  # the other plug-ins are still usable
                reason = f"sys.exit({error.code})" if isinstance(error, SystemExit) else error
                warnings.warn(f"entry point {point.name} = {point.value} does not load: {reason}", stacklevel=2)

    def resolve(self, name: str, where: str = "") -> T:
        """Return what is registered as `name`; of the path of a .py file, what that registers when imported."""
        if name.endswith(".py"):
            return self._read_file(Path(name), where)[1]
        self.load()
        if name not in self._items:
            raise unknown(self.kind, name, self._items, where)
        return self._items[name]

    def keep(self, path: str, where: str = "", find_problem: Callable[[T], str | None] = lambda _: None) -> str:
        """Import a .py file with one registration, keep that in the registry, and return its name.

        What `find_problem` finds wrong with it is raised, and the registry stays as it was.
        """
        name, item, origin = self._read_file(Path(path), where)
        if problem := find_problem(item):
            raise UsageError(f"{path}: {self.kind} {name!r} {problem}")
        self._items[name], self._origins[name] = item, origin
        return name

    def _read_file(self, path: Path, where: str) -> tuple[str, T, tuple[str, str]]:
        """Return name, class or record, and origin of what a file registers; leave the registry unchanged.

        Since the registry does not keep it, an edited or copied file may register the same name again.
        """
        if not path.is_file():
            raise UsageError(f"{where + ': ' if where else ''}no such file: {path}")
        self.load()
        spec = importlib.util.spec_from_file_location(USER_MODULE + path.stem, path)
        assert spec is not None, path
        module = importlib.util.module_from_spec(spec)
        before = dict(self._items), dict(self._origins)
        for name in [name for name, (home, _) in self._origins.items() if home == spec.name]:
            del self._items[name], self._origins[name]  # of an earlier reading
        sys.modules[spec.name] = module
        try:
            _HELPERS.look_beside(path)
            _execute(module, path)
            new = [(n, self._items[n], origin) for n, origin in self._origins.items() if origin[0] == spec.name]
        finally:
            self._items, self._origins = before
        if len(new) != 1:
            raise UsageError(f"{path} registers {len(new)} {self.kind}s, expected exactly one")
        return new[0]

    def __getitem__(self, name: str) -> T:
        return self.resolve(name)

    def home_of(self, name: str) -> str:
        """Return the module that registered `name`."""
        self.resolve(name)
        return self._origins[name][0]

    def helper_files(self) -> list[Path]:
        """Return the files of the modules that the last resolved file imported from its own folder."""
        return _HELPERS.files()

    # Mapping's own versions of these expect a KeyError; an unknown name here is a LookupError with advice.
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
    """The modules in the folder of a user's file. Those of one file are forgotten when the next is executed.

    Without that, two methods with a `helper.py` each would share the first one, and an edited one would stay as it was.
    """

    def __init__(self) -> None:
        self._folder: str | None = None
        self._before: set[str] = set()  # names of the modules that were there before the file was executed

    def look_beside(self, path: Path) -> None:
        """Let the file at `path` import modules of its folder, now or later in a hook; installed ones come first."""
        if self._folder in sys.path:
            sys.path.remove(self._folder)
        for name in self._find_modules():
            del sys.modules[name]
        self._folder, self._before = str(path.resolve().parent), set(sys.modules)
        sys.path.append(self._folder)
        importlib.invalidate_caches()

    def files(self) -> list[Path]:
        """Return the files of the modules that were imported."""
        files = (getattr(module, "__file__", None) for _, module in sorted(self._find_modules().items()))
        return [Path(file).resolve() for file in files if file]

    def _find_modules(self) -> dict[str, Any]:
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


def _execute(module: Any, path: Path) -> None:
    """Run a user's file; raise its errors as one line that names the file's line."""
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
