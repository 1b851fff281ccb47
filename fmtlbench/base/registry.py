"""Find classes and records by name: from the files of a package, from entry points, and from a user's file."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from .errors import UsageError, unknown
from .names import check_name
from .refs import Ref, identify_file
from .user_files import USER_MODULE, execute, name_module

T = TypeVar("T")
Registered = TypeVar("Registered", bound=type)


@dataclasses.dataclass(frozen=True)
class Brought(Generic[T]):
    """What a user's file has registered."""

    ref: Ref
    item: T
    origin: tuple[str, str]


class Registry(Mapping[str, T]):
    """A lazily filled mapping of names to classes or records.

    Files of the package whose names start with `_` hold shared code and register nothing.
    """

    def __init__(self, kind: str, package: str, find_problem: Callable[[Any], str | None] = lambda _: None) -> None:
        self.kind, self.package, self._find_problem = kind, package, find_problem
        top, _, place = package.partition(".")
        self.group = f"{top}.{place.rpartition('.')[2]}" if place else top  # of entry points, however deep it lies
        self._items: dict[str, T] = {}
        self._origins: dict[str, tuple[str, str]] = {}  # name → module and what it is called there
        self._brought: dict[tuple[str, str], Brought[T]] = {}  # path and content of a user's file → what it brings
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
        return self.find(name, where)[1]

    def find(self, given: str, where: str = "") -> tuple[Ref, T]:
        """Return what a name, or the path of a .py file, stands for, with what identifies it."""
        if given.endswith(".py"):
            return self.bring(given, where)
        if given not in self:
            raise unknown(self.kind, given, self._items, where)
        return Ref(self.kind, given), self._items[given]

    def bring(self, path: str, where: str = "") -> tuple[Ref, T]:
        """Return what a user's file registers; the file is executed unless it and its helpers are as they were.

        The registry stays as it was, so an edited or copied file may register the same name again.
        """
        if not Path(path).is_file():
            raise UsageError(f"{where + ': ' if where else ''}no such file: {Path(path)}")
        place = str(Path(path).resolve())
        known = [one for (there, _), one in self._brought.items() if there == place and one.ref.is_unchanged()]
        brought = known[0] if known else self._read_file(Path(path))
        self._brought[place, brought.ref.content] = brought
        return dataclasses.replace(brought.ref, path=path), brought.item

    def find_brought(self, ref: Ref) -> T | None:
        """Return what a user's file brought to this process, also if it has changed since; None if it was not read."""
        brought = self._brought.get((str(Path(str(ref.path)).resolve()), ref.content))
        return None if brought is None else brought.item

    def keep(self, ref: Ref) -> None:
        """Let what a user's file has brought stand under its name, in the place of what another file brought."""
        brought = self._brought[str(Path(str(ref.path)).resolve()), ref.content]
        self._items[ref.name], self._origins[ref.name] = brought.item, brought.origin

    def take(self, path: str, where: str, tree: dict[str, Any]) -> str:
        """Keep what a file brings, note the file in a config's tree, and return the registered name.

        What is wrong with it is raised, and the registry stays as it was.
        """
        file = str(Path(path).absolute())
        ref, item = self.bring(file, where)
        self.check(ref.name, item, file)
        self.keep(ref)
        tree.setdefault("plugins", {})[str(ref)] = ref.content
        tree.setdefault("plugin_files", {})[str(ref)] = file
        return ref.name

    def check(self, name: str, item: T, where: str) -> None:
        """Refuse an entry that is not as it should be."""
        if problem := self._find_problem(item):
            raise UsageError(f"{where}: {self.kind} {name!r} {problem}")

    def _read_file(self, path: Path) -> Brought[T]:
        """Execute a user's file and return what it registers; leave the registry unchanged."""
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
        name, item, origin = new[0]
        return Brought(identify_file(self.kind, name, str(path.absolute())), item, origin)

    def __getitem__(self, name: str) -> T:
        return self.resolve(name)

    def home_of(self, name: str) -> str:
        """Return the module that registered `name`; the path of a user's file that brought it with something else."""
        self.resolve(name)
        module = self._origins[name][0]
        return str(sys.modules[module].__file__) if module.startswith(USER_MODULE) else module

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


def check_class(found: Any, base: type, kind: str, texts: tuple[str, ...], where: str) -> type:
    """Return a class that a registry gave, if it is one of `base` with `texts` of its own and a dataclass of options.

    Args:
        found: What was registered.
        base: The class that it must be derived from.
        kind: Of what, for messages: "method".
        texts: Attributes that label its rows, which its parent's must not do.
        where: The flag, or the file and line, that it was asked for in.
    """
    if not (isinstance(found, type) and issubclass(found, base)):
        public = f"{base.__module__.partition('._')[0]}.{base.__name__}"
        raise UsageError(f"{where}: {found.__qualname__} is not a subclass of {public}")
    cls: Any = found  # which has what the base class has
    check_name(cls.name, kind, f"{where}: {cls.__qualname__}.name")  # it may have been changed after registering
    for name in texts:
        if name not in vars(cls):
            raise UsageError(f'{where}: {cls.__qualname__} has no {name} of its own; add {name} = "…" to the class')
        if not isinstance(getattr(cls, name), str):
            raise UsageError(f"{where}: {cls.__qualname__}.{name}: expected text, got {getattr(cls, name)!r:.80}")
    if not dataclasses.is_dataclass(cls.Params):
        raise UsageError(f"{where}: {cls.__qualname__}.Params is not a dataclass; add @dataclass(frozen=True)")
    return cls
