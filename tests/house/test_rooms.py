"""Every import stays within the plan of the house (docs/rooms.py, docs/architecture.md), and the plan is true."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rooms import FRONT, ORDER, PURPOSES, ROOMS, is_allowed, is_private, may_import, read_imports, read_rooms

IMPORTS = read_imports()


def lines(items) -> str:
    return "\n" + "\n".join(map(str, items))


def test_every_room_has_its_place_and_its_purpose():
    assert read_rooms() == set(ROOMS) == set(PURPOSES) and len(set(ROOMS)) == len(ROOMS)


def test_the_house_is_small_enough_to_know():
    assert len(ROOMS) <= 20 and len(ORDER) <= 12


def test_no_import_leaves_the_order():
    outside = [found for found in IMPORTS if not is_allowed(found)]
    assert not outside, lines(outside)


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
        "fmtlbench/engine/run.py": "import os\nimport fmtlbench.base.errors\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from ..reports import table\nelse:\n    from ..base.words import say\n",
        "fmtlbench/base/__init__.py": "",
        "fmtlbench/base/errors.py": "try:\n    from ..engine import run\nexcept ImportError:\n    pass\n",
        "fmtlbench/base/words.py": "from .errors import Error\n",
        "fmtlbench/base/registry.py": "",
        "algorithms/__init__.py": "",
        "algorithms/_base.py": "from ..base.registry import Registry\n",
        "algorithms/fedavg.py": "class FedAvg:\n    def step(self):\n        from fmtlbench.base import errors\n",
        "reports/table.py": "from ..algorithms import fedavg\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_imports_are_read_wherever_they_stand(house):
    found = read_imports(house)
    assert {(i.room, i.module, f"{i.file.name}:{i.line}") for i in found} == {
        (FRONT, "fmtlbench.engine.run", "__init__.py:2"),
        ("engine", "fmtlbench.algorithms._base", "__init__.py:1"),
        ("engine", "fmtlbench.algorithms.fedavg", "__init__.py:1"),
        ("engine", "fmtlbench.base.errors", "run.py:2"),
        ("engine", "fmtlbench.base.words", "run.py:7"),
        ("base", "fmtlbench.engine.run", "errors.py:2"),
        ("algorithms", "fmtlbench.base.registry", "_base.py:1"),
        ("algorithms", "fmtlbench.base.errors", "fedavg.py:3"),
        ("reports", "fmtlbench.algorithms.fedavg", "table.py:1"),
    }
    assert [str(i.file) for i in found if is_private(i.module)] == ["fmtlbench/engine/__init__.py"]
    assert read_rooms(house) == {FRONT, "engine", "base", "algorithms", "reports"}


def test_imports_against_the_order_are_found(house):
    forbidden = [(i.room, i.target) for i in read_imports(house) if not is_allowed(i)]
    assert forbidden == [("base", "engine"), ("reports", "algorithms")]


def test_a_row_may_import_those_before_it():
    assert may_import("base") == () and "networks" in may_import("data") and "data" not in may_import("networks")
    assert "algorithms" not in may_import("reports")
