"""Fixtures every room's tests may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_files import Folder
from kit import DUO, FEW, TINY, TRIO, as_flags

# Some virtual CPUs announce matrix instructions they do not have (fmtlbench/engine/precision.py): tests avoid them.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# A test run lasts a second, the energy tracker takes two to start: those that are about energy turn it on.
os.environ["FMTLBENCH_ENERGY"] = "off"


@pytest.fixture(scope="session")
def reference() -> Folder:
    """Outputs of the public reference implementations: `reference / "B_losses" / "losses.npz"` is a path."""
    return Folder()


@pytest.fixture(scope="session", autouse=True)
def no_power_cuts() -> Iterator[None]:
    """Nothing here asks what survives a power cut: waiting for the disk, dozens of times a run, is left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory) -> Path:
    """Tests keep their generated data to themselves."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["FMTLBENCH_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def scenario_file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("scenario") / "duo.yml"
    path.write_text(DUO)
    return str(path)


@pytest.fixture(scope="session")
def tiny_flags() -> list[str]:
    """TINY as the command line takes it."""
    return as_flags(TINY)


@pytest.fixture(scope="session")
def tiny_run_in(scenario_file):
    """`fmtlbench.run` on the two-client federation, three rounds, below a folder."""
    import fmtlbench

    def run(out, algo="fedhca2", **given):
        arguments = {"scenario": scenario_file, "rounds": 3, "out": out, "device": "cpu", **TINY}
        return fmtlbench.run(algo, **{**arguments, **given})

    return run


@pytest.fixture
def tiny_run(tmp_path, tiny_run_in):
    """The same, below tmp_path/runs."""

    def run(algo="fedhca2", **given):
        return tiny_run_in(algo=algo, **{"out": tmp_path / "runs", **given})

    return run


@pytest.fixture(scope="session")
def shared_run(tiny_run_in, tmp_path_factory):
    """The same for those who only look: a run that was made for anybody is shown, not made again."""
    out = tmp_path_factory.mktemp("shared")
    return lambda algo="fedhca2", **given: tiny_run_in(algo=algo, **{"out": out, **given})


@pytest.fixture
def checkpoints_stay(monkeypatch) -> None:
    """Finished runs leave their checkpoints, as after a kill right behind the summary."""
    from fmtlbench.runs.store import RunStore

    monkeypatch.setattr(RunStore, "remove_surplus", lambda store, keep: None)


@pytest.fixture
def trio(tmp_path) -> str:
    """The file of a scenario with three clients that have one, two and four tasks."""
    path = tmp_path / "trio.yml"
    path.write_text(TRIO)
    return str(path)


@pytest.fixture
def trio_run(trio, tmp_path):
    """`fmtlbench.run` on the three clients, two rounds with few images, below tmp_path/runs."""
    import fmtlbench

    def run(algo="fedavg", **given):
        arguments = {"scenario": trio, "rounds": 2, "out": tmp_path / "runs", "device": "cpu", "keep": "none"}
        return fmtlbench.run(algo, **{**arguments, **FEW, **given})

    return run
