"""Stopping a bench from outside, and two benches at once: real processes, imitated runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from fmtlbench.bench.reservations import reserve


def wait_for(condition, seconds=15.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return state != "Z"  # a zombie has ended; nobody has asked yet


@pytest.fixture
def benches(bench):
    """Processes of `bench`; none of them, nor of their runs, outlives the test."""
    started = []

    def start(*argv, **given):
        started.append(bench.process(*argv, **given))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    for pid in bench.pids() if bench.started.exists() else ():
        with contextlib.suppress(ProcessLookupError):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_bench_leaves_no_process_and_the_next_one_completes(bench, benches, number):
    process = benches("--algos", "fedavg", "--seeds", "0-1", "--jobs", "2", modes={"local": "hang", "fedavg": "hang"})
    wait_for(lambda: len(bench.starts()) == 2 and len(list(bench.out.rglob("metrics.jsonl"))) == 2)
    os.killpg(process.pid, number)  # as a terminal does: to everybody in the bench's group
    out, err = process.communicate(timeout=15)
    assert process.returncode == 1
    assert "interrupted, runs left: 4; the same command goes on" in out and "Traceback" not in err
    interrupted = bench.started.with_name("starts.interrupted").read_text().split()
    assert Counter(interrupted) == Counter(map(str, bench.pids()))  # each once
    assert not any(map(alive, bench.pids()))
    assert Counter(run.state for run in bench.plan("fedavg", seeds="0-1").runs) == {"resume": 2, "new": 2}

    second = benches("--algos", "fedavg", "--seeds", "0-1", "--jobs", "2")
    out, _ = second.communicate(timeout=20)
    assert second.returncode == 0 and "4 ran in" in out
    assert len(list(bench.out.rglob("summary.json"))) == 4


def test_a_second_interrupt_kills(bench, benches):
    process = benches("--algos", "fedavg", "--no-local", modes={"fedavg": "stubborn"})
    wait_for(lambda: bench.starts() and list(bench.out.rglob("metrics.jsonl")))
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None and alive(bench.pids()[0])
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 1 and not alive(bench.pids()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_runs_of_a_killed_bench_stop_too(bench, benches):
    process = benches("--algos", "fedavg", "--no-local", "--seeds", "0-1", "--jobs", "2", modes={"fedavg": "hang"})
    wait_for(lambda: len(list(bench.out.rglob("metrics.jsonl"))) == 2)
    process.kill()
    process.wait()
    wait_for(lambda: not any(map(alive, bench.pids())), 5)
    assert len(bench.started.with_name("starts.interrupted").read_text().split()) == 2


def test_a_run_that_outlives_its_bench_keeps_its_claim(bench, benches):
    process = benches("--algos", "fedavg", "--no-local", modes={"fedavg": "stubborn"})
    wait_for(lambda: list(bench.out.rglob("metrics.jsonl")))
    process.kill()
    process.wait()
    (pid,), (run,) = bench.pids(), bench.plan("fedavg", with_local=False).runs
    place = bench.out / ".bench"
    assert alive(pid) and reserve(place, run.key) is None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: reserve(place, run.key) is not None, 5)


def test_two_benches_at_once_do_every_run_once(bench, benches):
    words = ("--algos", "fedavg,fedper", "--seeds", "0-2", "--format", "json")
    processes = [benches(*words), benches(*words)]
    results = [process.communicate(timeout=30) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert Counter(bench.starts()).most_common(1)[0][1] == 1
    assert len(bench.starts()) == 9 == len(list(bench.out.rglob("summary.json")))
    counts = [json.loads(out)["counts"] for out, _ in results]
    assert sum(count["ran"] for count in counts) == 9
    assert all(count["ran"] + count["elsewhere"] + count["reused"] == 9 for count in counts)
