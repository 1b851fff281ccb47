"""The plan of the house: which room may import which, and a reader of what the source files really import.

A room is the first name below `fmtlbench`, a package or a module. `tests/test_rooms.py` holds the files to the plan,
`docs/draw_rooms.py` draws them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "fmtlbench"
BESIDE = ("algorithms", "metrics", "reports", "scenarios")  # folders that are installed as parts of the package
FRONT = PACKAGE  # the room of fmtlbench/__init__.py


@dataclass(frozen=True)
class Room:
    """A room, what it is for, and the rooms it may import beside the contracts."""

    name: str
    purpose: str
    imports: tuple[str, ...] = ()


def _room(name: str, purpose: str, imports: str = "") -> Room:
    return Room(name, purpose, tuple(imports.split()))


# Anybody may import these. They import nothing but contracts that stand before them.
CONTRACTS = (
    _room("errors", "the exceptions a user can cause, and the nearest valid choice"),
    _room("words", "times, quantities, counts and names of data as people read them"),
    _room("names", "which names may become names of files"),
    _room("named_files", "which config values may name files"),
    _room("files", "writing files and folders so that a crash leaves the old or the new"),
    _room("cache_folder", "where caches lie"),
    _room("found_once", "what is slow to find out about data, kept for the next time"),
    _room("schema", "plain data into checked dataclasses"),
    _room("yamlfile", "YAML with the line of every value"),
    _room("seeds", "random streams by name"),
    _room("amounts", "how much random transforms do to images"),
    _room("jit", "compiling with numba, with a cache that survives"),
    _room("kernels", "compiled passes over pixels"),
    _room("compiled", "when compiled passes are taken, and when torch"),
    _room("setting", "what must agree for two runs to share a table"),
    _room("userconfig", "the user's own settings file"),
    _room("registry", "names to classes and records: built in, installed, or given by path"),
    _room("user_code", "what identifies a class that a user's file brings"),
    _room("code_identity", "which code makes numbers: the package's files, and those that a config chooses"),
    _room("exchange", "what travels in a round: parties and rows"),
    _room("row_algebra", "linear algebra on rows, for methods and the engine"),
    _room("memory", "whether a request fits the machine"),
)

# From low to high: a room imports only rooms of lower rows, or such that stand before it in its own.
LAYERS = (
    (
        _room("metrics", "one file per metric; knows tensors, not files or federation"),
        _room("algorithms", "one file per method; sees rows, never models, data or files"),
        _room("weightings", "one file per way to weigh the losses of a client's tasks"),
        _room("presets", "how big a run is, and with which options methods ran there"),
        _room("flat_model", "a network's parameters as one flat vector"),
    ),
    (
        _room("kinds", "kinds of labels: arrays, tensors, files, pictures", "metrics"),
        _room("tasks", "one file per task: a record that names its kind, loss and metric", "kinds metrics"),
        _room("losses", "the losses that tasks name", "tasks"),
        _room("hooks", "a method at work, its answers checked", "algorithms"),
    ),
    (
        _room("datasets", "one file per dataset: what it labels, how it is read", "kinds metrics tasks"),
        _room("partitions", "one file per rule by which images are dealt", "tasks"),
        _room(
            "plugins",
            "metrics, partitions, tasks and weightings from a user's files",
            "metrics partitions tasks weightings",
        ),
        _room("meters", "a task's metric, set up for a dataset", "datasets metrics tasks"),
    ),
    (
        _room("scenarios", "one YAML file per scenario, and its reader", "datasets partitions plugins tasks"),
        _room("models", "the modules of networks, encoders and their weights", "tasks"),
        _room("architectures", "one file per network, told without torch", "models"),
    ),
    (
        _room("config", "the one frozen record that a run is a function of", "architectures datasets scenarios"),
        _room(
            "runs",
            "the one owner of run folders: which files, their form, written and read",
            "config presets weightings",
        ),
        _room("configured_tasks", "tasks as a config has them", "plugins tasks"),
        _room(
            "configured_code",
            "the code that a config uses",
            "algorithms architectures configured_tasks datasets metrics partitions tasks weightings",
        ),
        _room("networks", "a network at work, its answers checked", "architectures hooks models tasks"),
    ),
    (
        _room("client_models", "a client's network, from the config", "config configured_tasks models networks"),
        _room("cost", "time, energy, bytes, memory and operations", "models"),
        _room("listeners", "who is told what happens in a run", "cost runs"),
        _room("ray_cluster", "joining a Ray cluster", "runs"),
    ),
    (
        _room(
            "data",
            "each client's share of a dataset as batches",
            "config configured_tasks datasets kinds listeners metrics networks partitions plugins scenarios tasks",
        ),
        _room(
            "predictions", "predictions as files and pictures, paired with labels", "datasets kinds metrics runs tasks"
        ),
        _room(
            "checks",
            "whether the values of a config go together",
            "algorithms config datasets hooks meters metrics models networks scenarios tasks weightings",
        ),
    ),
    (
        _room(
            "resolving",
            "preset, scenario and overrides into one checked config",
            "algorithms architectures checks config datasets hooks meters models networks plugins presets scenarios "
            "weightings",
        ),
        _room("request", "everything a run is asked with, as a value", "ray_cluster resolving runs"),
        _room("run_file", "a run asked for by a file", "config datasets request resolving runs"),
        _room("importing", "configurations of the public code into ours", "datasets resolving scenarios"),
    ),
    (
        _room(
            "engine",
            "the federated round: clients, server, executors, checkpoints",
            "algorithms client_models config configured_code configured_tasks cost data datasets flat_model hooks "
            "listeners losses meters metrics models networks predictions ray_cluster runs tasks weightings",
        ),
    ),
    (
        _room("api", "a run from Python", "algorithms cost engine listeners presets request run_file runs"),
        _room(
            "pretrain",
            "the encoder weights that the package ships",
            "client_models config data datasets engine listeners models runs",
        ),
    ),
    (
        _room(
            "submissions",
            "runs as one file that others can check",
            "algorithms config configured_tasks engine meters presets resolving runs scenarios",
        ),
        _room(
            "bench",
            "grids of runs: planning, processes, progress",
            "algorithms api config configured_code cost listeners presets ray_cluster request resolving runs scenarios",
        ),
        _room("reports", "tables, tests and figures of stored runs; never torch", "metrics runs tasks"),
        _room(FRONT, "what `import fmtlbench` offers", "api reports runs"),
    ),
    (
        _room(
            "cli",
            "the command line: the only room that joins the others",
            "algorithms api architectures bench client_models configured_code cost data datasets engine fmtlbench "
            "importing listeners meters metrics models networks partitions predictions presets pretrain reports "
            "request resolving run_file runs scenarios submissions tasks weightings",
        ),
        _room("__main__", "`python -m fmtlbench`", "cli"),
    ),
)


@dataclass(frozen=True)
class Import:
    """One import of another room's module, where it stands."""

    room: str
    target: str  # a room
    module: str
    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.room} imports {self.module}"


def read_imports(root: Path = ROOT) -> list[Import]:
    """Return every import of one room by another, also those inside functions; not those for type checkers only."""
    files = dict(_modules(root))
    found = []
    for module, file in files.items():
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        for node in _imports(ast.parse(file.read_text(encoding="utf-8")).body):
            for target in _targets(node, package, files):
                here, there = room_of(module), room_of(target)
                if here != there:
                    found.append(Import(here, there, target, file.relative_to(root), node.lineno))
    return list(dict.fromkeys(found))


def read_rooms(root: Path = ROOT) -> set[str]:
    """Return the rooms that there are."""
    return {room_of(module) for module, _ in _modules(root)}


def room_of(module: str) -> str:
    """Return the room that a module belongs to: `fmtlbench.engine.run` to `engine`."""
    return [*module.split("."), FRONT][1]


def is_private(module: str) -> bool:
    """Whether a module is its room's own: some part of its name below the room begins with an underscore."""
    return any(part.startswith("_") for part in module.split(".")[2:])


def find_cycle(arrows: Iterable[tuple[str, str]]) -> list[str]:
    """Return rooms that import each other in a circle, the first again as the last; [] where there is none."""
    below: dict[str, list[str]] = {}
    for room, target in sorted(set(arrows)):
        below.setdefault(room, []).append(target)
    finished: set[str] = set()

    def visit(room: str, path: list[str]) -> list[str]:
        if room in path:
            return [*path[path.index(room) :], room]
        if room in finished:
            return []
        for target in below.get(room, ()):
            if circle := visit(target, [*path, room]):
                return circle
        finished.add(room)
        return []

    return next(filter(None, (visit(room, []) for room in below)), [])


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for folder in (PACKAGE, *BESIDE):
        base = [PACKAGE] if folder == PACKAGE else [PACKAGE, folder]
        for file in sorted((root / folder).rglob("*.py")):
            parts = [*base, *file.relative_to(root / folder).with_suffix("").parts]
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def _imports(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and _is_for_type_checkers(node.test):
            yield from _imports(node.orelse)
        else:
            yield from _imports(ast.iter_child_nodes(node))


def _is_for_type_checkers(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _targets(node: ast.Import | ast.ImportFrom, package: str, known: dict[str, Path]) -> Iterator[str]:
    """Return the modules of ours that a statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        names = [full if (full := f"{base}.{alias.name}") in known else base for alias in node.names]
    return (name for name in names if name.split(".")[0] == PACKAGE)
