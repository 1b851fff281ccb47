"""benchmarks/mutants.py: its list fits the product, and on a toy tree it finds what there is to find."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from rooms import ROOMS, ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import mutants

PRODUCT = """\
def add(a, b):
    return a + b


def double(a):
    return 2 * a


def triple(a):
    return 3 * a
"""
TESTS = {
    "tests/test_sums.py": "from fmtlbench.sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
    "tests/wider/test_all.py": "from fmtlbench.sums import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "tests/wider/test_text.py": "def test_text():\n    assert '3 * a' in open('fmtlbench/sums.py').read()\n",
    "tests/test_broken.py": "def test_never():\n    assert False\n",
}
LIST = """\
rooms: {sums: [tests/wider, tests/wider/test_text.py]}
not_behaviour: [test_text.py]
defects:
- {name: minus, room: sums, file: fmtlbench/sums.py, old: a + b, new: a - b, tests: [tests/test_sums.py]}
- {name: half, room: sums, file: fmtlbench/old_sums.py, old: 2 * a, new: a / 2, tests: [tests/gone/test_sums.py]}
- {name: unseen, room: sums, file: fmtlbench/sums.py, old: 3 * a, new: 4 * a, tests: [tests/test_sums.py]}
- {name: always red, room: sums, file: fmtlbench/sums.py, old: 3 * a, new: 4 * a, tests: [tests/test_broken.py]}
- {name: nowhere, room: sums, file: fmtlbench/sums.py, old: 5 * a, new: 6 * a, tests: [tests/test_sums.py]}
"""


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a second less per process
    files = {"fmtlbench/__init__.py": "", "fmtlbench/sums.py": PRODUCT, **TESTS}
    for name, text in files.items():
        (tmp_path / "toy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "toy" / name).write_text(text)
    (tmp_path / "list.yml").write_text(LIST)
    return tmp_path / "toy"


def judge(toy: Path, *flags: str) -> int:
    results = toy.parent / "results.json"
    words = ["--base", str(toy), "--list", str(toy.parent / "list.yml"), "--results", str(results), *flags]
    return mutants.main(words)


def test_what_tests_see_is_found_and_nothing_else(toy, capsys):
    assert judge(toy) == 1
    kept = json.loads((toy.parent / "results.json").read_text())["defects"]
    assert {name: (each["verdict"], each["by"]) for name, each in kept.items()} == {
        "minus": ("found", "tests/test_sums.py::test_add"),
        "half": ("found", "tests/wider/test_all.py::test_double"),  # in the file that holds the text now
        "unseen": ("not found", ""),  # but by a test of sources
        "always red": ("undecided", "tests/test_broken.py::test_never fails without the defect too"),
        "nowhere": ("undecided", kept["nowhere"]["by"]),
    }
    said = capsys.readouterr().out
    assert "tests/gone/test_sums.py is not there; tests/test_sums.py runs instead" in said
    assert "fmtlbench/sums.py; of all files, no file has it so" in said
    assert "found 2 of 5" in said and "not found: unseen" in said and "undecided: always red; nowhere" in said
    assert (toy / "fmtlbench/sums.py").read_text() == PRODUCT

    # What is known is not asked again, until the tests have changed.
    assert judge(toy, "--only", "minus", "--wrap", "false") == 0
    with (toy / "tests/test_sums.py").open("a") as file:
        file.write("\n")
    assert judge(toy, "--only", "minus", "--wrap", "false") == 1


def test_an_unknown_name_gets_the_nearest(toy, capsys):
    with pytest.raises(SystemExit):
        judge(toy, "--only", "minos")
    assert "'minos': expected one of mutants.yml, such as 'minus'" in capsys.readouterr().err


def test_every_defect_of_the_list_can_be_made():
    plan = mutants.read_plan(mutants.LIST)
    problems = []
    for defect in plan.defects:
        try:
            place, text, broken = mutants.find_place(defect, ROOT)
        except mutants.Mistake as mistake:
            problems.append(f"{defect.name}: {mistake}")
            continue
        if place != ROOT / defect.file:
            problems.append(f"{defect.name}: its text is in {place.relative_to(ROOT)} now")
        if place.suffix == ".py":
            compile(broken, defect.name, "exec")
        assert broken != text, defect.name
    assert not problems


def test_every_room_has_three_defects_at_least():
    counts = Counter(defect.room for defect in mutants.read_plan(mutants.LIST).defects)
    assert counts.keys() == {*ROOMS} and min(counts.values()) >= 3
    assert counts.total() >= 60
