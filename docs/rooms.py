"""The plan of the house: the rooms, in the order in which they may import each other, and a reader of real imports.

A room is a package below `fmtlbench`. `fmtlbench/__init__.py` and `api.py` are one room, the front; `__main__.py` is of
`cli`. `tests/house/test_rooms.py` holds the files to the plan, `docs/draw_rooms.py` draws them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "fmtlbench"
BESIDE = ("algorithms", "metrics", "reports", "scenarios")  # folders that are installed as parts of the package
FRONT = "front"

# A room may import the rooms of the rows before its own, and of its own row those that stand before it.
ORDER = (
    ("base",),
    ("metrics", "tasks", "exchange"),
    ("weightings", "algorithms", "networks", "data"),
    ("scenarios", "config"),
    ("runs",),
    ("cost", "listeners"),
    ("engine",),
    ("inference", "reports", "bench"),
    ("submissions", FRONT),
    ("cli",),
)
# Beside that: reports read what runs stored. They never load torch, the engine or the zoo.
NARROW = {"reports": ("base", "metrics", "tasks", "config", "runs")}

PURPOSES = {
    "base": "what knows nothing of the field: errors, words, files, schema, YAML, registries, seeds",
    "metrics": "one file per metric; knows tensors, not files or federation",
    "tasks": "one file per task: a record that names its kind of labels, its loss and its metric",
    "exchange": "all that a method sees: parties, rows, algebra on rows, and how its hooks are called",
    "weightings": "one file per way to weigh the losses of a client's tasks",
    "algorithms": "one file per method; sees rows, never networks, data or files",
    "networks": "one file per network below `architectures/`; encoders, their weights, flattening, counting",
    "data": "datasets and partitions, one file each; batches, transforms, caches, each client's views",
    "scenarios": "one YAML file per scenario, and its reader",
    "config": "what a run is asked for: request, presets, resolving, one frozen value",
    "runs": "the one owner of run folders: which files, their form, which code made them",
    "cost": "time, energy, bytes, memory and operations",
    "listeners": "who is told what happens in a run",
    "engine": "the federated round: clients, server, executors, checkpoints",
    "inference": "what is done with trained networks: load, predict, score, export",
    "bench": "many runs: grids, probes, recipes, tuning; one plan of them, and their processes",
    "submissions": "runs as one file that others can check",
    "reports": "tables, tests and figures of stored runs; never torch",
    FRONT: "what `import fmtlbench` offers",
    "cli": "the command line: flags and words, no logic of the field",
}
ROOMS = tuple(room for row in ORDER for room in row)


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


def may_import(room: str) -> tuple[str, ...]:
    """Return the rooms that a room may import."""
    return NARROW.get(room, ROOMS[: ROOMS.index(room)])


def is_allowed(found: Import) -> bool:
    """Whether an import stays within the order."""
    return found.room in ROOMS and found.target in may_import(found.room)


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
    name = [*module.split("."), FRONT][1]
    return {"api": FRONT, "__main__": "cli"}.get(name, name)


def is_private(module: str) -> bool:
    """Whether a module is its room's own: some part of its name below the room begins with an underscore."""
    return any(part.startswith("_") for part in module.split(".")[2:])


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
