"""Runs on a Ray cluster of two nodes: the numbers of a serial run, whatever is lost on the way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from interrupt import AfterRound, Stopped
from kit import QUICK, THREE, TOY, as_flags

import fmtlbench
from fmtlbench import api
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.config.request import RunRequest
from fmtlbench.cost.energy import choose_energy
from fmtlbench.engine.messages import Train
from fmtlbench.engine.ray.executor import RayExecutor

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.cluster


class Nodes:
    """Two nodes with one CPU each, which are machines of their own to Ray."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        self.second = self.cluster.add_node(num_cpus=1)
        ray.init(address=self.cluster.address, logging_level="ERROR", log_to_driver=False, configure_logging=False)

    def restore(self):
        if self.second is None:
            self.second = self.cluster.add_node(num_cpus=1)
        assert self.cluster.wait_for_nodes(timeout=60) is None

    def remove_second(self):
        node, self.second = self.second, None
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes():
    nodes = Nodes()
    yield nodes
    ray.shutdown()
    nodes.cluster.shutdown()


@pytest.fixture
def whole(nodes):
    nodes.restore()
    return nodes


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    file = tmp_path_factory.mktemp("scenario") / "three.yml"
    file.write_text(THREE)
    return str(file)


def run_on_ray(algo, scenario, make=None, **asked):
    """Run on the cluster; `make` is called as RayExecutor is and gives the executor."""
    request = RunRequest.of(algo, scenario, executor="ray", **asked)
    made = None if make is None else make(request.ray_options(), None, choose_energy(False, None, None))
    return api.launch(request, executor=made)


@pytest.fixture
def both(scenario, tmp_path):
    """Run a method serially and on the cluster; returns what the two left."""

    def run(algo, make=None, **options):
        here = {key: value for key, value in options.items() if not key.startswith("ray.")}
        made = [
            fmtlbench.run(algo, scenario, out=tmp_path / "serial", rounds=3, **{**QUICK, **here}),
            run_on_ray(algo, scenario, make, out=tmp_path / "ray", rounds=3, **{**QUICK, **options}),
        ]
        return [(result.folder / "metrics.jsonl").read_bytes() for result in made], made

    return run


PLAIN, TRACKS, ANCHORS, STATE = "fedavg", "ditto", "fedamp", "fedhca2"


@pytest.mark.parametrize(
    ("algo", "options"),
    [
        (TRACKS, {}),
        (ANCHORS, {"algo.lam": 0.5}),
        ("fedmtl", {"federation.participation": 0.67}),
        (PLAIN, {"federation.statistics": "travel", "federation.park": "disk", "model.backbone": "resnet_nano"}),
        ("scaffold", {"federation.compression": "topk", "federation.stragglers": 0.5}),
        ("fedfomo", {"train.weighting": "db", "federation.park": "disk"}),
    ],
    ids=[
        "tracks",
        "anchors",
        "participation",
        "travelling statistics, parked",
        "variates, compressed, stragglers",
        "foreign models, weighting, parked",
    ],
)
def test_ray_is_serial_bit_for_bit(whole, both, algo, options):
    (serial, on_ray), (here, result) = both(algo, **options)
    assert serial == on_ray
    files = [here.folder / "sums.npz", *(here.folder / "networks").iterdir()]
    assert len(files) == 2 + len(here.summary["clients"])
    for file in files:
        assert (result.folder / file.relative_to(here.folder)).read_bytes() == file.read_bytes()
    timing = [json.loads(line) for line in (result.folder / "timing.jsonl").read_text().splitlines()]
    assert len(timing[-1]["processes"]) == 2 and {use["threads"] for use in timing[-1]["processes"]} == {1}
    assert timing[-1]["memory"]["process"] > sum(use["process"] for use in timing[-1]["processes"])
    session = json.loads((result.folder / "manifest.json").read_text())["sessions"][-1]
    assert session["executor"]["name"] == "ray" and session["executor"]["machines"] == 2
    assert sorted(map(len, session["executor"]["clients"])) == [1, 2]


class Losing(RayExecutor):
    """Loses a chosen place once, right after one of its clients was told to train in round 2.

    `chosen` and `how` are given (node, process number, clients) of a place.
    """

    def __init__(self, *given, chosen, how):
        super().__init__(*given, on_send=self.look)
        self.chosen, self.how, self.lost, self.known = chosen, how, False, {}

    def start(self, factory, count):
        facts = super().start(factory, count)
        self.known = {id(place): (*self.whereabouts(place), len(place.members)) for place in self.processes}
        return facts

    def look(self, place, index, message):
        told = isinstance(message, Train) and message.index == 1
        if told and not self.lost and self.chosen(*self.known[id(place)]):
            self.lost = True
            self.how(*self.known[id(place)])


@pytest.fixture
def lose(both):
    """Run a method serially, and on a cluster that loses a place; returns the rows of the two, and the executor."""

    def run(algo, chosen, how, **options):
        made = []

        def make(*given):
            made.append(Losing(*given, chosen=chosen, how=how))
            return made[-1]

        (serial, on_ray), _ = both(algo, make, **options)
        return serial, on_ray, made[0]

    return run


def test_a_process_killed_in_the_middle_of_a_round_costs_time_only(whole, lose):
    def kill(node, process, clients):
        threading.Timer(0.1, os.kill, (process, signal.SIGKILL)).start()  # its clients are training by then

    serial, on_ray, executor = lose(STATE, lambda node, process, clients: clients == 2, kill)
    assert serial == on_ray and executor.lost and executor.replaced == 1


def test_a_node_removed_in_the_middle_of_a_round_costs_time_only(whole, lose):
    """Its clients find no other place with a CPU and share one."""
    second = whole.second.node_id
    chosen, how = lambda node, process, clients: node == second, lambda *_: whole.remove_second()
    serial, on_ray, executor = lose(PLAIN, chosen, how, **{"ray.patience": 20})
    assert serial == on_ray and executor.lost and executor.replaced >= 1


def test_a_run_goes_on_under_the_other_executor_and_back(whole, scenario, tmp_path):
    def run(executor, stop_after=None, out="there"):
        stop = None if stop_after is None else AfterRound(stop_after)
        asked = {"out": tmp_path / out, "executor": executor, "rounds": 4, **QUICK}
        return fmtlbench.run(STATE, scenario, progress=stop, **asked)

    for executor, stop_after in (("serial", 1), ("ray", 3)):
        with pytest.raises(Stopped):
            run(executor, stop_after)
    mixed, serial = run("serial"), run("serial", out="whole")
    assert (mixed.folder / "metrics.jsonl").read_bytes() == (serial.folder / "metrics.jsonl").read_bytes()
    assert mixed.summary == serial.summary
    sessions = json.loads((mixed.folder / "manifest.json").read_text())["sessions"]
    assert [session["executor"]["name"] for session in sessions] == ["serial", "ray", "serial"]


def test_a_killed_driver_leaves_a_run_that_goes_on(whole, scenario, tmp_path):
    flags = as_flags(QUICK)
    command = [sys.executable, "-m", "fmtlbench", "run", "--algo", STATE, "--scenario", scenario, "--rounds", "4",
               "--executor", "ray", "--ray-address", whole.cluster.address, "--out", str(tmp_path / "killed"),
               *flags]  # fmt: skip
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("killed/**/checkpoint/round-00002")):
        assert driver.poll() is None, driver.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    resumed = fmtlbench.run(STATE, scenario, out=tmp_path / "killed", executor="serial", rounds=4, **QUICK)
    serial = fmtlbench.run(STATE, scenario, out=tmp_path / "whole", rounds=4, **QUICK)
    assert not resumed.reused and resumed.summary == serial.summary
    assert (resumed.folder / "metrics.jsonl").read_bytes() == (serial.folder / "metrics.jsonl").read_bytes()


def test_a_network_of_a_file_is_built_on_every_machine(whole, both, tmp_path):
    file = tmp_path / "toy.py"
    file.write_text(TOY)
    (serial, on_ray), (_, result) = both(PLAIN, **{"model.architecture": str(file)})
    assert serial == on_ray and result.summary["setting_text"]["architecture"] == "toy"


class Changed:
    """Ray with some of its functions replaced, for RayExecutor's `connect`."""

    def __init__(self, **functions):
        self.functions = functions

    def __getattr__(self, name):
        return self.functions.get(name) or getattr(ray, name)

    def executor(self, *given):
        return RayExecutor(*given, connect=lambda address, size: contextlib.nullcontext(self))


def test_a_method_that_machines_do_not_have_is_one_line(whole, scenario, tmp_path):
    method = tmp_path / "mine.py"
    method.write_text(
        "from fmtlbench.algorithms import ALGORITHMS\nfrom fmtlbench.algorithms.fedavg import FedAvg\n\n\n"
        '@ALGORITHMS.register("mine")\nclass Mine(FedAvg):\n    title, paper = "Mine", "none"\n'
    )

    def remote(kind):  # what processes are made with: the file is gone before the first
        method.unlink(missing_ok=True)
        return ray.remote(kind)

    with pytest.raises(UsageError, match=r"mine\.py: not there on a machine of the cluster"):
        changed = Changed(remote=remote)
        run_on_ray(str(method), scenario, changed.executor, out=tmp_path / "runs", rounds=1, **QUICK)


def test_a_method_that_fails_elsewhere_names_itself(whole, scenario, tmp_path):
    method = tmp_path / "wrong.py"
    method.write_text(
        "from fmtlbench.algorithms import ALGORITHMS\nfrom fmtlbench.algorithms.fedavg import FedAvg\n\n\n"
        '@ALGORITHMS.register("wrong")\nclass Wrong(FedAvg):\n    title, paper = "Wrong", "none"\n\n'
        "    def local_objective(self, local):\n        return 1 / 0\n"
    )
    expected = r"wrong\.local_objective failed: ZeroDivisionError.*client nyud-multi-1, round 1"
    with pytest.raises(FmtlbenchError, match=expected) as caught:
        fmtlbench.run(str(method), scenario, out=tmp_path / "runs", executor="ray", rounds=1, **QUICK)
    assert len(str(caught.value).splitlines()) == 1


def test_a_process_that_finds_no_place_is_one_line(whole, scenario, tmp_path):
    options = {**QUICK, "ray.workers": 1, "ray.memory_gb": 9e4, "ray.patience": 3, "ray.retries": 1}
    with pytest.raises(FmtlbenchError, match=r"no machine of the cluster has room for a process \(.*90000\.0 GB"):
        fmtlbench.run(PLAIN, scenario, out=tmp_path / "runs", executor="ray", rounds=1, **options)


def test_more_processes_than_there_is_room_for_are_refused_at_once(whole, scenario, tmp_path):
    with pytest.raises(FmtlbenchError, match="3 processes with 1 CPUs each, and the cluster has 2 CPUs"):
        fmtlbench.run(PLAIN, scenario, out=tmp_path / "runs", executor="ray", **{**QUICK, "ray.workers": 3})


def test_a_full_object_store_is_one_line(whole, scenario, tmp_path):
    def full(*_, **__):
        raise ray.exceptions.ObjectStoreFullError("no room for 1 byte")

    with pytest.raises(FmtlbenchError, match=r"object store has no room.*ray\.object_store_gb"):
        changed = Changed(put=full)
        run_on_ray(PLAIN, scenario, changed.executor, out=tmp_path / "runs", rounds=1, **QUICK)
