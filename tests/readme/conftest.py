"""A copy of the package that takes seconds where the real one takes minutes, and runs that pages may start from."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from snippets import ROOT

FEW = {"federation": {"rounds": 2}, "evaluation": {"every": 1}}  # two rounds are the least that MAS takes
SMALL = {  # by preset
    "nano": {**FEW, "data": {"train_samples": {"pascal": 40, "nyud": 16}, "test_samples": {"pascal": 6, "nyud": 6}}},
    "probe": {**FEW, "data": {"test_samples": {"pascal": 6, "nyud": 6}}},
}
FINISHED = [(algo, seed) for seed in (0, 1) for algo in ("local", "fedavg", "fedhca2")]
TIMEOUT = 1200  # seconds of a block


@dataclass(frozen=True)
class Place:
    """A folder to work in, and the environment in which `fmtlbench` and `python` are of the copy."""

    folder: Path
    environment: dict[str, str]

    def shell(self, script: str) -> str:
        """Do the lines in bash, stop at the first that fails, and return what was printed."""
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture(scope="session")
def copied(tmp_path_factory):
    """The environment in which `fmtlbench` is a copy of the package; in it only two presets are others.

    Whatever starts a process of its own (bench does) finds the same copy. Processes are forks of one that has imported
    everything (warm.py).
    """
    folder = tmp_path_factory.mktemp("readme")
    package = folder / "copy" / "fmtlbench"
    shutil.copytree(ROOT / "fmtlbench", package)  # with what Python and numba have compiled: their times are kept
    for name in ("algorithms", "metrics", "reports", "scenarios"):
        shutil.copytree(ROOT / name, package / name)
    for name, sections in SMALL.items():
        file = package / "config" / "presets" / f"{name}.yml"
        preset = yaml.safe_load(file.read_text(encoding="utf-8"))
        for section, values in sections.items():
            preset[section] |= values
        file.write_text(yaml.safe_dump(preset, allow_unicode=True), encoding="utf-8")
    programs, warm = folder / "bin", Path(__file__).parent / "warm.py"
    nearby = tempfile.TemporaryDirectory()  # the paths of sockets must be short
    socket = Path(nearby.name) / "warm"
    programs.mkdir()
    asks = f'exec "{sys.executable}" -I -S "{warm}" ask "{socket}" "{sys.executable}"'
    for name, command in {"fmtlbench": f"{asks} -m fmtlbench", "python": asks}.items():
        (programs / name).write_text(f'#!/bin/sh\n{command} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "copy"),
        "FMTLBENCH_ENERGY": "off",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "WANDB_MODE": "offline",  # as wandb is told on machines without an account
        "WARM_PYTHON": str(programs / "python"),
    }
    server = subprocess.Popen([sys.executable, warm, "serve", socket], env=environment, cwd=folder)
    while not socket.exists():
        assert server.poll() is None, "warm.py did not start"
        time.sleep(0.1)
    yield environment
    server.kill()
    server.wait()
    nearby.cleanup()


@pytest.fixture
def place(copied, tmp_path) -> Place:
    """An empty folder to work in."""
    return Place(tmp_path, copied)


@pytest.fixture(scope="session")
def finished_runs(copied, tmp_path_factory) -> Path:
    """A folder of finished runs of st_mt_1, made once for all processes of pytest."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "finished"
    with (shared.parent / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            making = shared.with_suffix(".making")
            making.mkdir()
            lines = [f"fmtlbench run --algo {algo} --scenario st_mt_1 --seed {seed}" for algo, seed in FINISHED]
            Place(making, {**copied, "FMTLBENCH_ENERGY": "on"}).shell("\n".join(lines))
            (making / "runs").rename(shared)
    return shared
