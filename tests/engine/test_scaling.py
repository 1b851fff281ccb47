"""What lies below clients in many processes, without any: packing, sharing out, parking, adding up."""

from __future__ import annotations

import json
import pickle
import socket
from functools import partial

import numpy as np
import pytest
import torch
from kit import TINY, make_federation
from resuming import cut_and_whole, numbers_of

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.cost.energy import Reading
from fmtlbench.cost.processes import ProcessUse, add_energy, add_memory
from fmtlbench.cost.tracker import Source
from fmtlbench.data.views import parties
from fmtlbench.engine.client_models import client_memory
from fmtlbench.engine.messages import Install, Load, Train
from fmtlbench.engine.packing import Array, count_bytes, pack, unpack
from fmtlbench.engine.parking import Parking
from fmtlbench.engine.ray.cluster import connected

CPU = torch.device("cpu")


# -- messages between processes ----------------------------------------------------------------------------------


TENSORS = [
    torch.arange(6, dtype=torch.float32).reshape(2, 3), torch.tensor(7), torch.empty(0, 4), torch.ones(3).bool(),
    torch.arange(8, dtype=torch.float64)[::2], torch.tensor([1.5, -2.0]).bfloat16(),
]  # fmt: skip


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda t: f"{t.dtype} {tuple(t.shape)}")
def test_a_tensor_crosses_with_its_type_and_shape(tensor):
    message = Install({"encoder": [tensor]})
    there = unpack(pickle.loads(pickle.dumps(pack(message))))
    assert isinstance(there, Install) and there.rows["encoder"][0].dtype == tensor.dtype
    assert torch.equal(there.rows["encoder"][0], tensor)
    assert count_bytes(pack(message)) == tensor.numel() * tensor.element_size()


def test_what_is_no_tensor_crosses_as_it_is():
    message = Train(3, ("encoder",), None, ("decoder",))
    assert unpack(pack(message)) == message and count_bytes(pack(message)) == 0
    state = {"a": [torch.ones(2), {"b": "text", "c": None}], "d": (1, 2.5)}
    back = unpack(pack(Load(state))).state
    assert (
        torch.equal(back["a"][0], torch.ones(2)) and back["a"][1] == {"b": "text", "c": None} and back["d"] == (1, 2.5)
    )


def test_contents_may_lie_elsewhere():
    shelf = []

    def put(content):
        shelf.append(content)
        return len(shelf) - 1

    packed = pack({"x": torch.arange(3.0)}, put)
    assert packed["x"] == Array(0, "float32", (3,))
    shelf[0].flags.writeable = False  # as shared memory is
    assert torch.equal(unpack(packed, shelf.__getitem__)["x"], torch.arange(3.0))


# -- sharing out ----------------------------------------------------------------------------------


def test_clients_are_dealt_so_that_nobody_has_much_more():
    from fmtlbench.engine.ray.executor import share_out

    assert share_out([5, 4, 3, 3, 3], 2) == [[0, 3], [1, 2, 4]] or share_out([5, 4, 3, 3, 3], 2) == [[0, 2], [1, 3, 4]]
    assert share_out([1.0] * 6, 3) == [[0, 3], [1, 4], [2, 5]]
    assert share_out([1.0], 1) == [[0]] and share_out([2.0, 1.0], 5) == [[0], [1]]
    rng = np.random.default_rng(0)
    for _ in range(50):
        efforts = rng.uniform(1, 10, rng.integers(1, 40)).tolist()
        groups = int(rng.integers(1, 9))
        dealt = share_out(efforts, groups)
        assert sorted(i for group in dealt for i in group) == list(range(len(efforts)))
        largest = max(sum(efforts[i] for i in group) for group in dealt)
        assert largest <= 4 / 3 * max(sum(efforts) / groups, max(efforts)) + 1e-9  # Graham's bound is of the optimum


def test_a_client_s_memory_is_reckoned_from_its_network(scenario_file):
    config = resolve("ditto", scenario_file, overrides={**TINY, "train.optimizer": "adam", "train.amsgrad": True})
    federation = make_federation("ditto", scenario_file, **{**TINY, "train.optimizer": "adam", "train.amsgrad": True})
    for party in parties(config, federation.data):
        numbers = sum(federation.facts[party.index].parameters.values())
        assert client_memory(config, party, tracks=2) == 4 * numbers * 5 * 2


# -- parking ----------------------------------------------------------------------------------


def test_parked_tensors_come_back_with_all_their_views():
    vector, gradient = torch.randn(1000), torch.zeros(1000)
    views, before = [vector[10:20], vector[500:].view(20, 25)], vector.clone()
    parking = Parking("disk", CPU)
    for _ in range(3):
        parking.rest([vector, views[1]], [gradient])
        parking.rest([vector])  # resting already
        assert vector.untyped_storage().nbytes() == gradient.untyped_storage().nbytes() == 0
        parking.wake()
        assert torch.equal(vector, before) and torch.equal(views[0], before[10:20])
        gradient.zero_()  # it can be written to
        vector += 1
        before += 1
    parking.wake()  # awake already
    assert torch.equal(views[1].flatten(), before[500:])


def test_what_works_in_memory_is_not_parked_there():
    vector = torch.ones(3)
    for where in ("none", "cpu"):
        parking = Parking(where, CPU)
        parking.rest([vector])
        assert not parking.active and vector.untyped_storage().nbytes() == 12


@pytest.mark.parametrize("algo", ["ditto", "fedamp", "fedhca2", "fedbabu"])
def test_a_run_with_parked_clients_has_the_same_bytes(shared_run, tiny_run, tmp_path, algo):
    """Two tracks, anchors, hyper weights, fine-tuning before scoring; cut off and resumed as well."""
    options = {"algo.lam": 0.5} if algo in ("ditto", "fedamp") else {}
    plain = shared_run(algo, **options)
    for parked in cut_and_whole(partial(tiny_run, algo, **options, **{"federation.park": "disk"}), tmp_path):
        mine, theirs = numbers_of(parked), numbers_of(plain)
        assert [name for name in mine if mine[name] != theirs[name]] == ["config.yaml"]  # which says that it is parked
        assert parked.folder.name == plain.folder.name


def test_parked_clients_hold_no_memory(scenario_file):
    federation = make_federation("fedavg", scenario_file, **{**TINY, "federation.park": "disk"})
    federation.round(0)
    for client in federation.executor.clients:
        held = [t.untyped_storage().nbytes() for track in client.tracks.values() for t in track.large_tensors()]
        assert len(held) > 1 and sum(held) == 0 == client.main.flat.gradient.untyped_storage().nbytes()


# -- what processes use ----------------------------------------------------------------------------------


def use(node, cpu, measured, gpu=None, devices=(), counted=False):
    sources = {"cpu": Source(measured, "x"), "gpu": Source(True, "card")}
    parts = {"cpu": cpu} | ({} if gpu is None else {"gpu": gpu})
    return ProcessUse(node, {"process": 10, "device": None}, 1, Reading(parts, 1.0), None, sources, devices, counted)


def test_estimates_add_up_and_counters_of_one_machine_count_once():
    assert add_energy([use("", 1.0, False), use("", 2.0, False), use("b", 4.0, False)]) == {"cpu": 7.0}
    assert add_energy([use("", 1.0, True), use("", 2.0, True), use("b", 4.0, True)]) == {"cpu": 6.0}
    cards = [use("b", 0.0, False, 3.0, ("0",)), use("b", 0.0, False, 3.5, ("0",)), use("b", 0.0, False, 1.0, ("1",))]
    assert add_energy(cards) == {"cpu": 0.0, "gpu": 4.5}
    assert add_energy([use("", 1.0, False), use("", 2.0, False, counted=True)]) == {"cpu": 1.0}
    assert add_energy([ProcessUse("", {}, 1)]) == {}


def test_peaks_add_up():
    assert add_memory([{"process": 3, "device": None}, {"process": 4, "device": 5}]) == {"process": 7, "device": 5}
    assert add_memory([]) == {"process": None, "device": None}


# -- clusters that are not there ----------------------------------------------------------------------------------


def test_an_address_where_nobody_answers_is_one_line(tiny_run):
    with socket.socket() as taken:  # bound and not listening: refused at once
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(FmtlbenchError, match=f"--ray-address {address}: nobody answers there") as caught:
            tiny_run("fedavg", executor="ray", ray_address=address)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("address", ["head", "ray://head:10001", "head:port", ""])
def test_an_address_of_another_form_is_refused(address, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "from the environment")
    with pytest.raises(UsageError, match="expected host:port"), connected(address):
        pass


def test_the_executor_of_a_session_is_on_record(shared_run):
    folder = shared_run("local").folder
    session = json.loads((folder / "manifest.json").read_text())["sessions"][0]
    assert session["executor"] == {"name": "serial"}
