"""Requests that no machine could hold are refused with the number, before anything is made."""

from __future__ import annotations

import pytest

from fmtlbench.base.errors import RefusedError, UsageError
from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.data import machine_limits


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    """Four gigabytes, and a disk of ten."""
    monkeypatch.setattr(machine_limits, "machine_memory", lambda: 4 * 10**9)
    monkeypatch.setattr(machine_limits.shutil, "disk_usage", lambda folder: type("Usage", (), {"total": 10**10}))


@pytest.mark.parametrize(
    ("overrides", "key", "said"),
    [
        ({"data.size.nyud": [2**40, 2**40]}, "data.size.nyud", "memory, and this machine has 4 GB"),
        ({"data.size.nyud": [32000, 32000]}, "data.size.nyud", "takes at least"),
        (
            {"train.batch_size": 10**6, "data.train_samples.nyud": 60_000, "data.size.nyud": [64, 96]},
            "train.batch_size",
            "a batch of 60000 images of 64 × 96 takes at least 16.2 GB of memory, and this machine has 4 GB",
        ),
        (
            {"evaluation.batch_size": 10**9, "data.test_samples.nyud": 10**9},
            "evaluation.batch_size",
            "180 TB of memory",
        ),
        ({"data.train_samples.nyud": 10**9}, "data.train_samples.nyud", "1000000000 images take about 81.9 TB"),
        ({"data.test_samples.pascal": 2**62}, "data.test_samples.pascal", "holds 10 GB"),
    ],
)
def test_a_config_names_what_it_would_need(overrides, key, said):
    with pytest.raises(RefusedError) as caught:
        resolve("local", "st_mt_1", overrides=overrides)
    message = str(caught.value)
    assert f": {key}: " in message and said in message and "\n" not in message


def test_a_batch_is_not_larger_than_the_images_there_are():
    config = resolve("local", "st_mt_1", overrides={"train.batch_size": 10**9, "evaluation.batch_size": 10**9})
    assert config.train.batch_size == 10**9


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"train.local_epochs.nyud": 10**12}, "expected at most 1e+06"),
        ({"federation.rounds": 10**12}, "expected at most 1e+06"),
        ({"evaluation.unseen_epochs": 10**12}, "expected at most 1e+06"),
        ({"train.threads": 10**9}, "expected at most 1024"),
        ({"scenario.clients.0.count": 60_000, "scenario.clients.1.count": 60_000}, "120004 clients, expected at most"),
        ({"train.lr": 10**5000}, "expected a finite number, got a very large number"),
    ],
)
def test_counts_have_an_end(overrides, said):
    with pytest.raises(UsageError) as caught:
        resolve("local", "st_mt_1", overrides=overrides)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["data", "show", "synth-nyud", "-o", "x.png", "--size", "100000", "100000"], "TB of memory"),
        (["data", "show", "synth-nyud", "-o", "x.png", "--count", "1000000"], "expected at most 500"),
        (["run", "--algo", "local", "--scenario", "st_mt_1", "--seed", "9" * 30], "at most 18 digits"),
        (["bench", "--algos", "local", "--scenarios", "st_mt_1", "--seeds", "9" * 5000], "at most 18 digits"),
    ],
)
def test_commands_too(command, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1 and len(err) < 300
    assert not list(tmp_path.iterdir())
