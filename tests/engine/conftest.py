"""What the engine's tests share."""

from __future__ import annotations

import pytest
from kit import SMALLER, TINY, TRIO

import fmtlbench


@pytest.fixture
def scenario(tmp_path):
    """Write a scenario's text to a file; returns its path."""

    def write(text, name="mine"):
        path = tmp_path / f"{name}.yml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture(scope="session")
def trio(tmp_path_factory):
    """The file of a scenario with three clients that have one, two and four tasks."""
    path = tmp_path_factory.mktemp("scenario") / "trio.yml"
    path.write_text(TRIO)
    return str(path)


@pytest.fixture(scope="session")
def trio_run(trio, tmp_path_factory):
    """`fmtlbench.run` on the three clients, two rounds with few images.

    Whoever asks again for a run, and for no other folder, is shown the one that was made: it is there to be looked at.
    """
    usual = {"scenario": trio, "rounds": 2, "out": tmp_path_factory.mktemp("trio"), "device": "cpu", "keep": "none"}
    usual |= {"checkpoint_every": 9}  # of what nobody stops, the last one is enough

    def run(algo="fedavg", **given):
        return fmtlbench.run(algo, **{**usual, **TINY, **SMALLER, **given})

    return run
