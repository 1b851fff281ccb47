"""Every import stays within the plan of the house (tests/rooms.py, docs/architecture.md), and the plan is true."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rooms import CONTRACTS, LAYERS, Import, find_cycle, is_private, read_imports, read_rooms

IMPORTS = read_imports()
CONTRACT_NAMES = [room.name for room in CONTRACTS]
ROOMS = {room.name: room for layer in LAYERS for room in layer}


def is_allowed(found: Import) -> bool:
    if found.target not in CONTRACT_NAMES:
        return found.room in ROOMS and found.target in ROOMS[found.room].imports
    if found.room not in CONTRACT_NAMES:
        return True
    return CONTRACT_NAMES.index(found.target) < CONTRACT_NAMES.index(found.room)


def lines(items) -> str:
    return "\n" + "\n".join(map(str, items))


def test_every_room_has_its_place():
    assert read_rooms() == {*CONTRACT_NAMES, *ROOMS}


def test_the_plan_points_downwards_only():
    order = list(ROOMS)
    lower = {name: order[:place] for place, name in enumerate(order)}
    upwards = [(room.name, to) for room in ROOMS.values() for to in room.imports if to not in lower[room.name]]
    assert not upwards


def test_no_import_leaves_the_plan():
    outside = [found for found in IMPORTS if not is_allowed(found)]
    assert not outside, lines(outside)


def test_every_arrow_of_the_plan_is_there():
    real = {(found.room, found.target) for found in IMPORTS}
    gone = [f"{room.name} → {to}" for room in ROOMS.values() for to in room.imports if (room.name, to) not in real]
    assert not gone, lines(gone)


def test_no_rooms_import_each_other_in_a_circle():
    circle = find_cycle((found.room, found.target) for found in IMPORTS)
    assert not circle, " → ".join(circle)


def test_private_modules_are_their_room_s_own():
    strangers = [found for found in IMPORTS if is_private(found.module)]
    assert not strangers, lines(strangers)


def test_reports_never_load_torch():
    code = (
        "import pkgutil, importlib, sys, fmtlbench.reports as r\n"
        "for m in pkgutil.walk_packages(r.__path__, 'fmtlbench.reports.'): importlib.import_module(m.name)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_the_picture_and_the_table_of_rooms_are_fresh():
    from draw_rooms import FILES

    for file, make in FILES.items():
        assert file.read_text(encoding="utf-8") == make(), (
            f"{file.name} is stale; python docs/draw_rooms.py makes it anew"
        )


# -- the reader --------------------------------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path):
    files = {
        "fmtlbench/__init__.py": "def run():\n    from .engine import run\n",
        "fmtlbench/engine/__init__.py": "from ..algorithms import _base, fedavg\nfrom . import run\n",
        "fmtlbench/engine/run.py": "import os\nimport fmtlbench.errors\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from ..reports import table\nelse:\n    from ..words import say\n",
        "fmtlbench/errors.py": "try:\n    from .words import say\nexcept ImportError:\n    pass\n",
        "fmtlbench/words.py": "from .errors import Error\n",
        "algorithms/__init__.py": "",
        "algorithms/_base.py": "from ..registry import Registry\n",
        "algorithms/fedavg.py": "class FedAvg:\n    def step(self):\n        from fmtlbench import errors\n",
        "reports/table.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_imports_are_read_wherever_they_stand(house):
    found = read_imports(house)
    assert {(i.room, i.module, f"{i.file.name}:{i.line}") for i in found} == {
        ("fmtlbench", "fmtlbench.engine.run", "__init__.py:2"),
        ("engine", "fmtlbench.algorithms._base", "__init__.py:1"),
        ("engine", "fmtlbench.algorithms.fedavg", "__init__.py:1"),
        ("engine", "fmtlbench.errors", "run.py:2"),
        ("engine", "fmtlbench.words", "run.py:7"),
        ("errors", "fmtlbench.words", "errors.py:2"),
        ("words", "fmtlbench.errors", "words.py:1"),
        ("algorithms", "fmtlbench.registry", "_base.py:1"),
        ("algorithms", "fmtlbench.errors", "fedavg.py:3"),
    }
    assert [str(i.file) for i in found if is_private(i.module)] == ["fmtlbench/engine/__init__.py"]
    assert read_rooms(house) == {"fmtlbench", "engine", "errors", "words", "algorithms", "reports"}


def test_circles_and_forbidden_arrows_are_found(house):
    arrows = [(i.room, i.target) for i in read_imports(house)]
    assert find_cycle(arrows) == ["errors", "words", "errors"]
    assert find_cycle([arrow for arrow in arrows if arrow != ("errors", "words")]) == []
    forbidden = [(i.room, i.target) for i in read_imports(house) if not is_allowed(i)]
    assert forbidden == [("fmtlbench", "engine"), ("errors", "words")]
