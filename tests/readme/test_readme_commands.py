"""The README's commands, as they are written and in their order, with a nano preset that takes seconds, not minutes.

They run in a shell, on a copy of the package in which only presets/nano.yml is another: whatever starts a process of
its own (bench does) finds the same copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.readme

ROOT = Path(__file__).parents[2]
SMALL = {
    "federation": {"rounds": 2},
    "data": {"train_samples": {"pascal": 40, "nyud": 16}, "test_samples": {"pascal": 6, "nyud": 6}},
    "evaluation": {"every": 1},
}
NOT_HERE = {"With the real archives": "needs archives that cannot be shipped"}  # how a block is introduced → why not


def blocks() -> list[tuple[str, str]]:
    """Return (what stands before it, its commands) of every block of shell commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"([^\n]*)\n+^```\n(.*?)^```", text, re.M | re.S)
    return [(before, commands) for before, commands in found if commands.startswith("fmtlbench ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder to work in, and the environment in which `fmtlbench` is the copy."""
    folder = tmp_path_factory.mktemp("readme")
    package = folder / "copy" / "fmtlbench"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "fmtlbench", package, ignore=ignored)
    for name in ("algorithms", "metrics", "reports", "scenarios"):
        shutil.copytree(ROOT / name, package / name, ignore=ignored)
    file = package / "presets" / "nano.yml"
    preset = yaml.safe_load(file.read_text())
    for section, values in SMALL.items():
        preset[section] |= values
    file.write_text(yaml.safe_dump(preset, allow_unicode=True))
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "fmtlbench"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fmtlbench "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "copy"),
        "FMTLBENCH_ENERGY": "off",
        "OMP_NUM_THREADS": "1",
    }
    work = folder / "work"
    work.mkdir()
    return work, environment


def shell(place, script: str) -> str:
    """Do the lines in bash, stop at the first that fails, and return what was printed."""
    folder, environment = place
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_there_are_blocks_to_run():
    assert len(blocks()) >= 3
    assert all(any(before.startswith(start) for before, _ in blocks()) for start in NOT_HERE)


def test_the_copy_is_what_runs(place):
    code = "import fmtlbench, fmtlbench.reports; print(fmtlbench.__file__, fmtlbench.reports.__file__)"
    files = shell(place, f"'{sys.executable}' -c '{code}'").split()
    assert all("/copy/fmtlbench/" in file for file in files), files


def test_the_commands_of_the_readme_run_as_written(place):
    """One test, because the later lines need what the earlier ones leave."""
    import numpy as np
    from PIL import Image

    folder, _ = place
    (folder / "DIR").mkdir()  # the folder of predictions, and of labels, that a line speaks of
    edges = np.zeros((16, 16), np.uint8)
    edges[8] = 255
    Image.fromarray(edges).save(folder / "DIR" / "0001.png")
    for before, commands in blocks():
        if not any(before.startswith(start) for start in NOT_HERE):
            shell(place, commands)
    assert len(list(folder.glob("runs/*/*/*/summary.json"))) >= 24
    written = (
        "tables.tex",
        "site/index.html",
        "curves.pdf",
        "rooms.png",
        "figures",
        "reproduced/fedhca2_table5_mt_mt.tex",
    )
    assert all((folder / name).exists() for name in written)
