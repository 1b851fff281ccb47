"""What code makes a run's numbers, found by reading files: none of it is imported or executed here.

A file counts by what it does, not by how it is written: by its syntax tree without docstrings, which comments and
formatting do not change. The package's own files that every method uses are one part of the identity, `engine`; what a
config chooses (method, metrics, …) are parts of their own: the files that bring it, and what these import.
"""

from __future__ import annotations

import ast
import hashlib
import json
import secrets
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..base.files import sha256_file
from ..base.found_once import find_once
from .same_code import name_as_today, parts_as_today

PACKAGE = "fmtlbench"
# Part of an identity → the folder with one file for each thing that a config may choose.
CHOSEN = {
    "method": "algorithms",
    "metrics": "metrics",
    "tasks": "tasks",
    "datasets": "data/datasets",
    "network": "networks/architectures",
    "partitions": "data/partitions",
    "weighting": "weightings",
}
OF_METHOD = ("method", "weighting")  # what runs of one table may differ in
ADDED = ("weighting",)  # parts that older records lack: there was nothing to choose then
# What decides numbers: these packages and files. All else makes the config, which has an identity of its own, or tells,
# measures, stores and shows. Files that a config chooses are parts of their own; what they share (`_name.py`, and all
# that lies in no folder of `CHOSEN`) is of the part `engine`.
DECIDING = (
    "algorithms",
    "base/jit.py",
    "base/seeds.py",
    "config/run_config.py",
    "data",
    "engine",
    "exchange",
    "metrics",
    "networks",
    "scenarios",
    "tasks",
    "weightings",
)
BUILDING = ("networks/", "engine/client_models.py")  # of these, what makes networks
RECORDED = ("torch", "torchvision", "timm", "numpy", "scipy", "numba", "skimage", "safetensors")  # by their versions
FORM = 1  # of what is hashed; a change of `_write` makes it 2
MOST_NAMED = 3  # files in a sentence
SHORT = 12  # digits that tell two versions of one file apart
TYPED = secrets.token_hex(32)  # stands for code without a file, typed into a console: it is this process's own


@dataclass(frozen=True)
class CodeIdentity:
    """The code that makes a run's numbers: a sha256 for each part, and what the files of each part are."""

    engine: str
    method: str
    metrics: str
    tasks: str
    datasets: str
    network: str
    partitions: str
    weighting: str
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, files: Mapping[str, Mapping[str, str]]) -> CodeIdentity:
        """Make the identity of the given files: part → file → sha256."""
        short = {part: {name: digest[:SHORT] for name, digest in sorted(files[part].items())} for part in PARTS}
        return cls(**{part: digest_of(files[part]) for part in PARTS}, files=short)

    @property
    def parts(self) -> dict[str, str]:
        """The sha256 of every part, by name."""
        return {part: getattr(self, part) for part in PARTS}

    @property
    def sha256(self) -> str:
        """One sha256 for all of it."""
        return digest_of(self.parts)

    def find_changes(self, parts: Mapping[str, str]) -> list[str]:
        """Return the parts in which this code differs from another; a part that was added since is none by itself."""
        known = {**{part: getattr(self, part) for part in ADDED}, **parts_as_today(parts)}
        return [part for part in PARTS if known.get(part) != getattr(self, part)]

    def explain_change(self, parts: Mapping[str, str], files: Mapping[str, Mapping[str, str]]) -> str:
        """Say in which parts this code differs from another, and in which files of them, as far as these are known."""
        told = []
        for part in self.find_changes(parts):
            then, now = files.get(part), self.files.get(part, {})
            then = then and {name_as_today(name): digest for name, digest in then.items()}
            names = [] if then is None else _differing(then, now)
            told.append(f"{part}: {_list_names(names)} changed" if names else f"{part} changed")
        return "; ".join(told)

    def explain_network_change(self, files: Mapping[str, Mapping[str, str]]) -> str:
        """Say which of the files that build networks are not those of another code: part → file → sha256, as ours."""
        names = _differing(_building(files), _building(self.files))
        return f"{_list_names(names)} changed" if names else ""


PARTS = tuple(f.name for f in fields(CodeIdentity) if f.name != "files")


def digest_of(values: Mapping[str, str]) -> str:
    """Return one sha256 of several, by name."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _building(files: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the files of a code that build networks: of the chosen network, and what all share."""
    engine = {name: digest for name, digest in files.get("engine", {}).items() if name.startswith(BUILDING)}
    return {**engine, **files.get("network", {})}


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in {**then, **now} if then.get(name) != now.get(name)]


def _list_names(files: Iterable[str]) -> str:
    names = [name.rpartition("/")[2] if not name.endswith("/__init__.py") else name for name in sorted(files)]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


class Sources:
    """Files of code as they were when they were first asked for.

    A process works with what it has imported: for the code of its own runs it keeps one of these (`SOURCES`), so that
    a file that is edited meanwhile does not count. For the code of a process that is yet to start, make a new one.
    """

    def __init__(self) -> None:
        self._places: dict[str, Path | None] = {}
        self._read: dict[Path, tuple[str, tuple[_Import, ...]]] = {}
        self._chosen: dict[tuple[str, frozenset[str]], dict[str, str]] = {}
        self._engine: dict[str, str] | None = None

    def identify(self, used: Mapping[str, Iterable[str]]) -> CodeIdentity:
        """Return the identity of the engine with what a config uses.

        Args:
            used: Part → modules that register what is used. The path of a user's file stands for what that imports of
                this package: the file itself is a part of the config.
        """
        chosen = {part: self._read_chosen(part, frozenset(used.get(part, ()))) for part in CHOSEN}
        return CodeIdentity.of({"engine": self._read_engine(), **chosen})

    def identify_package(self) -> str:
        """Return one sha256 for all files of this package that can decide a number, whether chosen or not."""
        files = {name: file for part in DECIDING for name, file in self._files_of(part).items() if _is_chosen(name)}
        return digest_of({**self._read_engine(), **{name: self._read_file(file)[0] for name, file in files.items()}})

    def deciding_paths(self) -> list[Path]:
        """Return the files and folders that decide numbers."""
        return [self._find_part(part) for part in DECIDING]

    # -- the engine ----------------------------------------------------------------------------------------------------

    def _read_engine(self) -> dict[str, str]:
        """Return the files that decide numbers whatever the config chooses: name → sha256."""
        if self._engine is None:
            files = {n: file for part in DECIDING for n, file in self._files_of(part).items() if not _is_chosen(n)}
            contents = digest_of({name: sha256_file(file) for name, file in files.items()})

            def read() -> dict[str, str]:
                return {name: self._read_file(file)[0] for name, file in files.items()}

            def fits(value: Any) -> bool:
                return isinstance(value, dict) and value.keys() == files.keys()

            # Parsing takes longer than a run should wait; the same contents give the same answer.
            self._engine = find_once("code", {"form": FORM}, contents, fits, read)
        return self._engine

    def _files_of(self, part: str) -> dict[str, Path]:
        """Return the files of a package, or one file, by their names below fmtlbench, Python and data."""
        place = self._find_part(part)
        if part.endswith(".py"):
            return {part: place}
        below = {path.relative_to(place): path for path in sorted(place.rglob("*")) if path.is_file()}
        return {f"{part}/{name.as_posix()}": path for name, path in below.items() if _is_code(name)}

    def _find_part(self, part: str) -> Path:
        file = self._find(f"{PACKAGE}.{part.removesuffix('.py').replace('/', '.')}")
        if file is None:
            raise FileNotFoundError(f"{PACKAGE}/{part}: it decides numbers, and it is not there")
        return file if part.endswith(".py") else file.parent

    # -- what a config chooses -----------------------------------------------------------------------------------------

    def _read_chosen(self, part: str, used: frozenset[str]) -> dict[str, str]:
        """Return the files of a part, and the versions of the distributions that these are from: name → sha256."""
        if (part, used) not in self._chosen:
            found, tops = self._follow(used)
            versions = {name: version for top in tops for name, version in _find_versions(CHOSEN[part], top)}
            self._chosen[part, used] = {**found, **versions}
        return self._chosen[part, used]

    def _follow(self, used: Iterable[str]) -> tuple[dict[str, str], set[str]]:
        """Read modules and what they import; return name → sha256, and the packages that are not this one."""
        found: dict[str, str] = {}
        tops: set[str] = set()
        waiting, seen = list(used), set()
        while waiting:
            module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            is_path = _is_path(module)
            file = Path(module) if is_path else self._find(module)
            if file is None:
                found[module] = TYPED
                continue
            digest, imports = self._read_file(file)
            if not is_path:
                found[_name_file(module, file)] = digest
                tops |= {module.partition(".")[0]} - {PACKAGE}
            package = "" if is_path else module if file.name == "__init__.py" else module.rpartition(".")[0]
            home = None if is_path else module.partition(".")[0]
            waiting += filter(None, (self._target_of(one, package, home) for one in imports))
        return found, tops

    def _target_of(self, one: _Import, package: str, home: str | None) -> str | None:
        """Return the module that an import brings, if that counts as the same part; None if it does not."""
        names = package.split(".")
        base = ".".join([*(names[: len(names) + 1 - one.level] if one.level else ()), *filter(None, [one.module])])
        top = base.partition(".")[0]
        libraries = (*RECORDED, *sys.stdlib_module_names)
        if top not in (PACKAGE, home) and not (one.is_base and top not in libraries):
            return None
        inner = f"{base}.{one.name}"
        target = inner if one.name and self._find(inner) is not None else base
        if self._find(target) is None or (top == PACKAGE and not _is_chosen(_name_module(target))):
            return None
        return target

    # -- files ---------------------------------------------------------------------------------------------------------

    def _find(self, module: str) -> Path | None:
        if module not in self._places:
            self._places[module] = _locate(module)
        return self._places[module]

    def _read_file(self, file: Path) -> tuple[str, tuple[_Import, ...]]:
        """Return the sha256 of what a file does, and what it imports."""
        if file not in self._read:
            tree = _parse(file)
            if tree is None:
                self._read[file] = sha256_file(file), ()
            else:
                words: list[str] = []
                _write(tree, words)
                self._read[file] = hashlib.sha256("\n".join(words).encode()).hexdigest(), tuple(_imports_of(tree))
        return self._read[file]


SOURCES = Sources()  # of the code that this process works with


def _is_code(name: Path) -> bool:
    """Whether a file of a package counts: no caches, backups or hidden files, and no YAML, which configs hold."""
    hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
    return not hidden and not name.name.endswith(("~", ".pyc", ".yml", ".yaml"))


def _is_chosen(name: str) -> bool:
    """Whether a file of this package is there for what a config chooses: public, in a folder of such files."""
    below = (name[len(folder) + 1 :] for folder in CHOSEN.values() if name.startswith(f"{folder}/"))
    return any(not rest.startswith("_") for rest in below)


def _is_path(used: str) -> bool:
    return used.endswith(".py") and Path(used).is_absolute()


def _name_module(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.").replace(".", "/")


def _name_file(module: str, file: Path) -> str:
    """Return what a module's file is called wherever it is installed: `algorithms/fedper.py`."""
    return _name_module(module) + ("/__init__.py" if file.name == "__init__.py" else file.suffix)


def _locate(module: str) -> Path | None:
    """Find the file of a module without importing it or its packages; None if it has none."""
    if module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None)
        return Path(file) if file else None
    names, spec, path = module.split("."), None, None
    for depth in range(1, len(names) + 1):
        name = ".".join(names[:depth])
        finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path) for finder in finders)), None)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _find_versions(folder: str, top: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of the distributions that bring a top-level package to a room by an entry point."""
    from importlib.metadata import entry_points  # here: a start without it is quicker

    for point in entry_points(group=f"{PACKAGE}.{folder.rpartition('/')[2]}"):
        if point.value.partition(":")[0].partition(".")[0] == top and point.dist is not None:
            yield f"distribution {point.dist.name}", point.dist.version


# -- syntax trees ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Import:
    """`from module import name`, with `level` dots before the module; `name` is "" for `import module`."""

    level: int
    module: str
    name: str
    is_base: bool  # some class of the file is derived from it


def _parse(file: Path) -> ast.Module | None:
    """Return the syntax tree of a file; None for what is not Python, or not of this version."""
    if file.suffix != ".py":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the file's own text: whoever imports it is told
            return ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return None


def _write(node: Any, words: list[str]) -> None:
    """Write a tree in words that are the same in every version of Python, unlike those of `ast.unparse`."""
    if isinstance(node, ast.AST):
        words.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name != "ctx":  # later versions add fields, empty as a rule
                words.append(name)
                _write(value, words)
        words.append(")")
    elif isinstance(node, list):
        for member in node:
            if not _is_docstring(member):
                _write(member, words)
        words.append("]")
    else:
        words.append(repr(node))


def _is_docstring(node: Any) -> bool:
    """Whether a statement is a text that nothing is done with, at the head of a function or anywhere."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imports_of(tree: ast.Module) -> Iterator[_Import]:
    """Yield what a file imports, also inside functions; not what is for type checkers only."""
    statements = list(_statements(tree.body))
    bases = {_first_name(base) for node in statements if isinstance(node, ast.ClassDef) for base in node.bases}
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _Import(0, alias.name, "", (alias.asname or alias.name.partition(".")[0]) in bases)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield _Import(node.level, node.module or "", alias.name, (alias.asname or alias.name) in bases)


def _statements(body: Iterable[Any]) -> Iterator[Any]:
    """Yield statements and those inside them; expressions, most of a tree, are not looked into."""
    for node in body:
        yield node
        is_unused = isinstance(node, ast.If) and "TYPE_CHECKING" in (
            _first_name(node.test),
            getattr(node.test, "attr", ""),
        )
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            if isinstance(inner, list) and not (is_unused and name == "body"):
                yield from _statements(inner)


def _first_name(node: ast.AST) -> str:
    """Return the name that an expression begins with: `net` of `net.Base[int]`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")
