"""Whole runs on a Ray cluster of two nodes: what the loop over processes does here, it does there."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fmtlbench import cli
from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.bench import ray_jobs as module
from fmtlbench.bench import workers
from fmtlbench.bench.display import Lines
from fmtlbench.bench.estimate import Pace
from fmtlbench.bench.grid import Flags, read_grid
from fmtlbench.bench.local_jobs import run_command
from fmtlbench.bench.plan import make_plan
from fmtlbench.bench.ray_jobs import ray_jobs
from fmtlbench.config.request import RunRequest

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.cluster

FAKE_RUN = Path(__file__).parents[1] / "bench" / "fake_run.py"


@pytest.fixture(scope="module")
def nodes():
    """Two nodes with one CPU each, which are machines of their own to Ray."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False, configure_logging=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


class Said(Lines):
    """Keeps what is told, and lets a test look at the loop."""

    def __init__(self, look=lambda loop: None):
        self.text = io.StringIO()
        super().__init__(self.text)
        self.look = look

    def tick(self, loop):
        super().tick(loop)
        self.look(loop)

    def events(self, *kinds):
        events = map(json.loads, self.text.getvalue().splitlines())
        return [event for event in events if not kinds or event["event"] in kinds]


class Bench:
    """Imitated runs (tests/bench/fake_run.py) on the cluster; modes by method."""

    def __init__(self, folder, scenario):
        self.out, self.scenario, self.starts = folder / "runs", scenario, folder / "starts"

    def plan(self, algos="local,fedavg", seeds="0"):
        grid = read_grid(None, Flags(algos, self.scenario, seeds, rounds=2, overrides={}))
        return make_plan(grid.asked(), RunRequest("", "", out=self.out), "cpu", with_local=False)

    def work(self, plan, look=lambda loop: None, modes=None, **given):
        def command(run):
            mode = (modes or {}).get(run.label, "fine")
            code = json.dumps({"sha256": run.store.code.sha256, "parts": run.store.code.parts})
            return [sys.executable, "-S", "-E", str(FAKE_RUN), mode, str(run.store.folder), str(self.starts), code]

        self.said = Said(look)
        with ray_jobs(None, self.out) as hosts:
            return workers.Workers(plan, command, self.said, Pace(), hosts=hosts, **given).work()

    def pids(self):
        return [int(line.split()[0]) for line in self.starts.read_text().splitlines()]


@pytest.fixture
def bench(nodes, tmp_path, scenario_file):
    return Bench(tmp_path, scenario_file)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_runs_on_the_cluster_are_those_of_processes_byte_for_byte(nodes, tmp_path, scenario_file, tiny_flags, capsys):
    """Three of them, two at a time, and the second time none."""
    words = ["bench", "--algos", "local,fedavg,fedper", "--scenarios", scenario_file, "--rounds", "2", "--device",
             "cpu", "--jobs", "2", "--no-energy", *tiny_flags]  # fmt: skip
    there = ["--hosts", "ray", "--out", str(tmp_path / "there")]
    assert cli.main([*words, "--out", str(tmp_path / "here")]) == 0
    assert cli.main([*words, *there]) == 0
    here, on_ray = (
        {file.relative_to(tmp_path / side): file.read_bytes() for file in (tmp_path / side).rglob("metrics.jsonl")}
        for side in ("here", "there")
    )
    assert len(here) == 3 and here == on_ray
    assert not list((tmp_path / "there" / ".bench").glob("shared-*"))
    capsys.readouterr()
    assert cli.main([*words, *there]) == 0
    assert "3 reused in " in capsys.readouterr().out


def test_what_finds_no_place_waits_and_is_not_called_started(bench):
    """Three at a time on two CPUs, on both nodes."""
    seen = []

    def look(loop):
        seen.append((len(loop.working), sum(not working.job.waiting for working in loop.working)))

    outcome = bench.work(bench.plan("local,fedavg,fedper"), look, jobs=3)
    assert outcome.complete and outcome.count("ran") == 3
    assert max(together for together, _ in seen) == 3 and max(running for _, running in seen) <= 2
    kinds = [event["event"] for event in bench.said.events("queued", "start", "ran")]
    assert kinds[:3] == ["queued"] * 3 and kinds.count("start") == kinds.count("ran") == 3
    assert all(record.seconds > 0 for record in outcome.records.values())


def test_runs_whose_actor_or_process_is_killed_are_tried_again(bench, capsys):
    """The actor of one and the process of the other; nothing of it is on the standard output, the result's place."""
    killed = {}

    def look(loop):
        for working in loop.working:
            label = working.run.label
            if label not in killed and working.job.round >= 1:
                killed[label] = ray.get(working.job.actor.whereabouts.remote())
                os.kill(killed[label][label == "fedavg"], signal.SIGKILL)

    outcome = bench.work(bench.plan(), look, {"local": "hang_once", "fedavg": "hang_once"}, jobs=2)
    assert outcome.complete and {record.attempts for record in outcome.records.values()} == {2}
    errors = {event["name"]: event["error"] for event in bench.said.events("retry")}
    assert errors.keys() == killed.keys() and "lost on the cluster: The actor died" in errors["local"]
    assert "killed by SIGKILL" in errors["fedavg"] and capsys.readouterr().out == ""
    wait_for(lambda: not any(map(alive, bench.pids())))


def test_a_run_that_is_lost_too_often_is_listed(bench):
    killed = []

    def look(loop):
        for working in loop.working:
            if working.job.round and not killed:
                killed.append(ray.get(working.job.actor.whereabouts.remote())[0])
                os.kill(killed[0], signal.SIGKILL)

    outcome = bench.work(bench.plan("fedavg"), look, {"fedavg": "hang"}, retries=0)
    (record,) = outcome.records.values()
    assert (record.outcome, record.attempts) == ("failed", 1) and "lost on the cluster" in record.error
    assert "\n" not in record.error


def test_a_run_whose_machine_is_lost_is_tried_again_on_another(nodes, bench):
    """One run on each machine; when one machine is gone, its run waits until the other's place is free."""
    second = next(node for node in nodes.list_all_nodes() if not node.head)
    raylet = second.all_processes["raylet"][0].process.pid
    there, freed = {}, []  # method → whether its run was on the second machine

    def look(loop):
        numbers = {w.run.label: w.job.actor.whereabouts.remote() for w in loop.working if w.job.round}
        if not there and len(numbers) == 2:
            for label, (actor, _) in zip(numbers, ray.get([*numbers.values()])):
                there[label] = raylet in [process.pid for process in psutil.Process(actor).parents()]
            nodes.remove_node(second, allow_graceful=False)
        elif bench.said.events("retry") and not freed:
            freed.extend(label for label in numbers if not there[label])
            os.kill(ray.get(numbers[freed[0]])[1], signal.SIGKILL)  # it hangs: so its place becomes free

    try:
        outcome = bench.work(bench.plan(), look, {"local": "hang_once", "fedavg": "hang_once"}, jobs=2)
    finally:
        nodes.add_node(num_cpus=1)
        nodes.wait_for_nodes(timeout=60)
    assert outcome.complete and {record.attempts for record in outcome.records.values()} == {2}
    first, _ = bench.said.events("retry")
    assert there[first["name"]] and "lost on the cluster: " in first["error"]


def test_a_budget_interrupts_runs_and_forgets_what_waits(bench, monkeypatch):
    """On both nodes: asked once, and killed only if they do not stop; the rest has never begun."""
    monkeypatch.setattr(workers, "GRACE", 2.0)

    def look(loop):
        if sum(working.job.round > 0 for working in loop.working) == 2:
            loop.budget = 0.0

    modes = {"local": "hang", "fedavg": "stubborn"}
    outcome = bench.work(bench.plan(seeds="0-1"), look, modes, jobs=3, budget=120)
    assert outcome.stopped == "budget" and outcome.count("left") == 4
    started = [line.split() for line in bench.starts.read_text().splitlines()]
    assert [name for _, name, *_ in started if name == "local"] == ["local"] and len(started) == 2
    interrupted = bench.starts.with_name("starts.interrupted").read_text().split()
    assert interrupted == [pid for pid, name, *_ in started if name == "local"]
    assert not any(map(alive, bench.pids())) and len(bench.said.events("start")) == 2
    assert sorted(run.state for run in bench.plan(seeds="0-1").runs) == ["new", "new", "resume", "resume"]
    wait_for(lambda: ray.available_resources().get("CPU") == 2.0)


def test_a_killed_bench_leaves_no_process_and_the_same_command_goes_on(nodes, tmp_path, scenario_file, tiny_flags):
    words = ["bench", "--algos", "fedavg", "--scenarios", scenario_file, "--rounds", "4", "--device", "cpu",
             "--no-local", "--no-energy", "--hosts", "ray", "--ray-address", nodes.address,
             "--out", str(tmp_path / "runs"), *tiny_flags]  # fmt: skip
    driver = subprocess.Popen(
        [sys.executable, "-m", "fmtlbench", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: list(tmp_path.glob("runs/**/checkpoint/round-00001")) or driver.poll() is not None, 120)
    assert driver.poll() is None, driver.stderr.read()
    driver.kill()
    driver.wait()
    # It needs no other look at processes: the run's own lock is free once its process has ended.
    from fmtlbench.bench.reservations import worked_on

    (folder,) = tmp_path.glob("runs/duo/fedavg/*")
    wait_for(lambda: not worked_on(folder))
    assert cli.main(words) == 0
    (log,) = tmp_path.glob("runs/.bench/logs/duo/fedavg/*.log")
    assert log.read_text().count("$ ") == 2 and "going on after round" in log.read_text()


def test_an_address_where_nobody_is_is_one_line_and_nothing_is_written(tmp_path, scenario_file):
    """In a process of its own, which has no connection yet."""
    command = [sys.executable, "-m", "fmtlbench", "bench", "--algos", "fedavg", "--scenarios", scenario_file,
               "--device", "cpu", "--hosts", "ray", "--ray-address", "127.0.0.1:9",
               "--out", str(tmp_path / "runs")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "--ray-address 127.0.0.1:9: nobody answers there" in done.stderr and not (tmp_path / "runs").exists()


def test_a_folder_that_a_machine_does_not_share_is_one_line(nodes, tmp_path, monkeypatch):
    """Imitated by a file that is gone by the time machines look for it."""
    original = module._check_nodes

    def vanished(ray, nodes, shared):
        Path(shared.file).unlink()
        original(ray, nodes, shared)

    monkeypatch.setattr(module, "_check_nodes", vanished)
    with (
        pytest.raises(FmtlbenchError, match=r"--out .*runs: a machine of the cluster does not see") as caught,
        ray_jobs(None, tmp_path / "runs"),
    ):
        pytest.fail("came to work")
    assert "\n" not in str(caught.value)


def test_other_versions_on_a_machine_are_one_line(nodes, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "cluster_versions", lambda: {"torch": "0.1"})
    with (
        pytest.raises(FmtlbenchError, match=r"a machine of the cluster has torch .* for 0\.1"),
        ray_jobs(None, tmp_path / "runs"),
    ):
        pytest.fail("came to work")


@pytest.mark.parametrize(("cpus", "gpus"), [(1, 1.0), (5, 0.0)])
def test_a_run_that_no_machine_has_room_for_is_one_line(nodes, tmp_path, cpus, gpus):
    with (
        pytest.raises(FmtlbenchError, match=rf"a run needs {cpus} CPUs and {gpus:g} GPUs, .* have 1 and 0, 1 and 0"),
        ray_jobs(None, tmp_path / "runs", cpus, gpus),
    ):
        pytest.fail("came to work")


def test_the_command_of_a_run_is_the_one_of_a_process(bench, monkeypatch):
    """Only the Python is the machine's own, and the environment says what the user's says of runs."""
    monkeypatch.setenv("FMTLBENCH_COUNTRY", "FRA")
    plan = bench.plan("fedavg")
    (run,) = plan.runs
    sent = []

    class Actor:
        def __getattr__(self, name):
            return self

        def remote(self, *given):
            sent.append(given)
            return self

        options = __call__ = lambda self, *_, **__: self

    class Fake:
        remote = Actor()

    jobs = module.RayJobs(Fake(), None, cpus=2)
    jobs.start(run, run_command(run), Path("some.log"), 0)
    words, log, environment = sent[-1]
    assert words == run_command(run)[1:] and log == str(Path("some.log").absolute())
    assert environment["FMTLBENCH_COUNTRY"] == "FRA" and "PATH" not in environment
