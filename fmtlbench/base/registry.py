"""Find classes and records by name: from the files of a package, from entry points, and from a user's file."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from pathlib import Path
from typing import Any, TypeVar, cast

from .errors import UsageError, unknown
from .names import check_name
from .user_files import USER_MODULE, execute, name_module

T = TypeVar("T")
Registered = TypeVar("Registered", bound=type)


class Registry(Mapping[str, T]):
    """A lazily filled mapping of names to classes or records.

    Files of the package whose names start with `_` hold shared code and register nothing.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind, self.package = kind, package
        top, _, place = package.partition(".")
        self.group = f"{top}.{place.rpartition('.')[2]}" if place else top  # of entry points, however deep it lies
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
        from importlib.metadata import entry_points  # here: a start without it is quicker

        self._loaded = True
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.package}.{module.name}")
        for point in entry_points(group=self.group):
            try:
                point.load()
            except (Exception, SystemExit) as error:  # the other plug-ins are still usable
                reason = f"sys.exit({error.code})" if isinstance(error, SystemExit) else error
                warnings.warn(f"entry point {point.name} = {point.value} does not load: {reason}", stacklevel=2)

    def resolve(self, name: str, where: str = "") -> T:
        """Return what is registered as `name`; of the path of a .py file, what that registers when imported."""
        if name.endswith(".py"):
            return self._read_file(Path(name), where)[1]
        if name not in self:
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
        home = name_module(path)
        before = dict(self._items), dict(self._origins)
        for name in [name for name, (module, _) in self._origins.items() if module == home]:
            del self._items[name], self._origins[name]  # of an earlier reading
        try:
            execute(path)
            new = [(n, self._items[n], origin) for n, origin in self._origins.items() if origin[0] == home]
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

    # Mapping's own versions of these expect a KeyError; an unknown name here is a LookupError with advice.
    def __contains__(self, name: object) -> bool:
        if name not in self._items and not self._loaded:
            file = f"{self.package}.{name}"
            # The file of that name first: most commands need one method and one weighting, not all there are.
            if str(name).isidentifier() and str(name)[0] != "_" and importlib.util.find_spec(file):
                importlib.import_module(file)
            if name not in self._items:
                self.load()
        return name in self._items

    def get(self, name: str, default: Any = None) -> Any:
        return self._items[name] if name in self else default

    def __iter__(self) -> Iterator[str]:
        self.load()
        return iter(sorted(self._items))

    def items(self) -> ItemsView[str, T]:
        return dict(zip(self, map(self._items.__getitem__, self))).items()

    def values(self) -> ValuesView[T]:
        return dict(self.items()).values()

    def __len__(self) -> int:
        self.load()
        return len(self._items)
